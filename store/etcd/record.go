package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/semelgo/semel/store"
)

// The keys of a record begin with the prefix, "r/", the ID and a slash. The end of a key is
// the field. Fields that a change keeps are keys of their own, so no change needs a read.
const (
	fieldHead     = "h" // token, due, expire
	fieldChange   = "c" // time of the last change of the token, tainted
	fieldIdentity = "i" // time of the create, priority, operation, scope, key, fingerprint
	fieldInput    = "n"
	fieldOutcome  = "o"
	fields        = 5
)

// Indexes. Those of states have the ID as key and due as value, and are changed together with
// the record. Keys of expiring have the time before the ID; a record that no longer expires
// then leaves its key behind, and Purge removes it.
const (
	indexPending    = "p/"
	indexInProgress = "l/"
	indexExpiring   = "x/"
)

const (
	tokenSize    = 13
	timeSize     = 8
	headSize     = tokenSize + 2*timeSize
	idSize       = len(store.ID{})
	zeroPriority = 128 // priority zero, because priorities are stored without a sign
)

var errRecord = errors.New("a record has another form")

// recordKeys begins the keys of all records.
func (s *Store) recordKeys() string { return s.prefix + "r/" }

// key returns the key of a field. Without a field it begins all keys of the record.
func (s *Store) key(id store.ID, field string) string {
	return s.recordKeys() + string(id[:]) + "/" + field
}

// stateKey is the key of a record in the index of its state, or empty.
func (s *Store) stateKey(state store.State, id store.ID) string {
	switch state {
	case store.Pending:
		return s.prefix + indexPending + string(id[:])
	case store.InProgress:
		return s.prefix + indexInProgress + string(id[:])
	case store.Absent, store.InDoubt, store.Succeeded, store.Failed:
	}
	return ""
}

func (s *Store) expireKey(expire int64, id store.ID) string {
	return string(appendTime([]byte(s.prefix+indexExpiring), expire)) + string(id[:])
}

func appendToken(b []byte, t store.Token) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(t.State)), t.Attempt)
	return binary.BigEndian.AppendUint64(b, t.Owner)
}

func readToken(b []byte) store.Token {
	return store.Token{State: store.State(b[0]), Attempt: binary.BigEndian.Uint32(b[1:]), Owner: binary.BigEndian.Uint64(b[5:])}
}

// nextToken is the least text above all that begin with the token.
func nextToken(token []byte) []byte {
	next := append([]byte(nil), token...)
	for i := len(next) - 1; i >= 0; i-- {
		next[i]++
		if next[i] != 0 {
			break
		}
	}
	return next
}

// appendTime appends a time in microseconds since 1970, so that texts sort as the times do.
func appendTime(b []byte, t int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(t)) }

func readTime(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// after returns the time after now. It is at least 1, because zero means none.
func after(now int64, d time.Duration) int64 { return max(1, now+d.Microseconds()) }

// micros returns n microseconds, at most the longest duration.
func micros(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(max(-most, min(n, most))) * time.Microsecond
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

func identity(now int64, r *store.Record) []byte {
	b := append(appendTime(nil, now), byte(int(r.Priority)+zeroPriority))
	for _, text := range []string{r.Operation, r.Scope, r.Key, string(r.Fingerprint)} {
		b = appendText(b, text)
	}
	return b
}

// readRecord reads a record from the values of its keys. Without any there is none.
func readRecord(kvs []*mvccpb.KeyValue, id store.ID, now int64) (*store.Record, error) {
	if len(kvs) == 0 {
		return nil, nil //nolint:nilnil // no record is a result
	}
	r, head := &store.Record{ID: id}, false
	for _, kv := range kvs {
		v, ok := kv.Value, true
		switch string(kv.Key[len(kv.Key)-1:]) {
		case fieldHead:
			if ok = len(v) == headSize; ok {
				readHead(r, v, now)
				head = true
			}
		case fieldChange:
			if ok = len(v) == timeSize+1; ok {
				r.Since, r.Tainted = micros(now-readTime(v)), v[timeSize] != 0
			}
		case fieldIdentity:
			ok = readIdentity(r, v, now)
		case fieldInput:
			r.Input = v
		case fieldOutcome:
			r.Outcome = v
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w", id, errRecord)
		}
	}
	if !head {
		return nil, fmt.Errorf("%s: %w", id, errRecord)
	}
	return r, nil
}

func readHead(r *store.Record, v []byte, now int64) {
	r.Token = readToken(v)
	if due := readTime(v[tokenSize:]); due != 0 {
		r.Due = micros(due - now)
	}
	if expire := readTime(v[tokenSize+timeSize:]); expire != 0 {
		r.Expire = micros(expire - now)
		if r.Expire == 0 { // an Expire of zero means never
			r.Expire = -1
		}
	}
}

func readIdentity(r *store.Record, v []byte, now int64) bool {
	if len(v) < timeSize+1 {
		return false
	}
	r.Age, r.Priority = micros(now-readTime(v)), int8(int(v[timeSize])-zeroPriority)
	var fingerprint string
	ok := readTexts(string(v[timeSize+1:]), &r.Operation, &r.Scope, &r.Key, &fingerprint)
	r.Fingerprint = []byte(fingerprint)
	return ok
}

// readTexts reads texts that appendText has written, and nothing after them.
func readTexts(rest string, texts ...*string) bool {
	for _, text := range texts {
		if len(rest) < 4 {
			return false
		}
		n := int(binary.BigEndian.Uint32([]byte(rest[:4])))
		if rest = rest[4:]; n > len(rest) {
			return false
		}
		*text, rest = rest[:n], rest[n:]
	}
	return rest == ""
}
