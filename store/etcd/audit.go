package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/store"
)

// SwapNoted takes the record and the tokens of the note from the change.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	if err := c.Check(maxOutcome); err != nil {
		return store.SwapResult{Err: fmt.Errorf("swap %w", err)}, nil
	}
	now := s.clock()
	note := appendToken(appendToken(appendTime(nil, now), c.If), c.To.Token)
	note = appendText(appendText(note, n.Actor), n.Reason)
	key := s.noteKeys(c.To.ID) + string(appendToken(nil, c.To.Token)) // a repeated change has the same key
	reply, err := s.txn(ctx, []clientv3.Op{s.change(&c, now, clientv3.OpPut(key, string(note)))})
	if err != nil {
		return store.SwapResult{}, fmt.Errorf("swap with a note: %w", err)
	}
	return readResult(&c, reply.Responses[0].GetResponseTxn(), now)
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	reply, err := s.get(ctx, s.noteKeys(id), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	now := s.clock()
	notes := make([]store.Note, len(reply.Kvs))
	for i, kv := range reply.Kvs {
		if notes[i], err = readNote(id, kv.Value, now); err != nil {
			return nil, fmt.Errorf("read notes: %w", err)
		}
	}
	return notes, nil
}

// noteKeys begins the keys of the notes of a record.
func (s *Store) noteKeys(id store.ID) string { return s.prefix + "n/" + string(id[:]) + "/" }

// readNote reads a note: its time, the tokens, and two texts after their lengths.
func readNote(id store.ID, b []byte, now int64) (store.Note, error) {
	const texts = timeSize + 2*tokenSize
	if len(b) < texts {
		return store.Note{}, errNote
	}
	n := store.Note{ID: id, From: readToken(b[timeSize:]), To: readToken(b[timeSize+tokenSize:]), Age: micros(now - readTime(b))}
	if !readTexts(string(b[texts:]), &n.Actor, &n.Reason) {
		return store.Note{}, errNote
	}
	return n, nil
}

var errNote = errors.New("a note has another form")
