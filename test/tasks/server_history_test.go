//go:build unix

package tasks_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	driver "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// tokenChange is a change of the token of a record.
type tokenChange struct {
	id       store.ID
	from, to store.Token
	early    bool // the record was not due
}

// lastKnown is what the log of a server has said about a record.
type lastKnown struct {
	token store.Token
	due   float64
}

// writeHistory writes the changes to the table that the triggers of a database write.
func writeHistory(t *testing.T, db tables, changes []tokenChange, records []store.Record) {
	t.Helper()
	byID := make(map[store.ID]store.Record, len(records))
	for _, r := range records {
		byID[r.ID] = r
	}
	tx := check.Must(db.BeginTx(t.Context(), nil))(t)
	for _, c := range changes {
		r := byID[c.id]
		check.Must(tx.ExecContext(t.Context(), `insert into history (`+columns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, r.Key, r.Operation,
			int(c.from.State), c.from.Attempt, int64(c.from.Owner), int(c.to.State), c.to.Attempt, int64(c.to.Owner), c.early))(t)
	}
	check.Require(t, tx.Commit())
}

// tokenOf reads the token in which the value of a record begins.
func tokenOf(v string) store.Token {
	b := []byte(v)
	return store.Token{State: store.State(b[0]), Attempt: binary.BigEndian.Uint32(b[1:]), Owner: binary.BigEndian.Uint64(b[5:])}
}

// readAppendOnlyFile reads the changes from the file in which Redis has each command. A
// record has its token, when it is due, three other times, and then the rest; the third of
// them is that of the change.
func readAppendOnlyFile(t *testing.T, client *driver.Client, prefix string) (changes []tokenChange) {
	t.Helper()
	dir := client.ConfigGet(t.Context(), "dir").Val()["dir"]
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files in %s, %v, want one", len(files), dir, err)
	}
	f, err := os.Open(files[0])
	check.Require(t, err)
	defer f.Close()
	known := make(map[store.ID]lastKnown)
	begin := prefix + ":{0}:r:"
	in := bufio.NewReader(f)
	number := func(v string, at int) float64 {
		return math.Float64frombits(binary.BigEndian.Uint64([]byte(v[at : at+8])))
	}
	for {
		words, err := readCommand(in)
		if errors.Is(err, io.EOF) {
			return changes
		}
		check.Require(t, err, "read %s", files[0])
		if len(words) < 2 || !strings.HasPrefix(words[1], begin) {
			continue
		}
		switch words[0] {
		case "MSET":
			for pair := range slices.Chunk(words[1:], 2) {
				id, v := store.ID([]byte(pair[0][len(begin):])), pair[1]
				was, is := known[id], tokenOf(v)
				if was.token != is {
					changes = append(changes, tokenChange{id, was.token, is, was.due > number(v, 37)})
				}
				known[id] = lastKnown{is, number(v, 13)}
			}
		case "SETRANGE":
			id := store.ID([]byte(words[1][len(begin):]))
			known[id] = lastKnown{known[id].token, number(words[3], 0)}
		default:
			t.Fatalf("the command %s of a record", words[0])
		}
	}
}

// readCommand reads a command of Redis's protocol.
func readCommand(in *bufio.Reader) (words []string, err error) {
	length := func() (n int, err error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := length()
	for range n {
		size, err := length()
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, err
}

// readRevisions reads the changes from all revisions of the keys of records in etcd. The
// key h of a record has its token and when it is due, and the key c the time of the change.
func readRevisions(t *testing.T, client *clientv3.Client, prefix string) (changes []tokenChange) {
	t.Helper()
	begin := prefix + "/r/"
	last, err := client.Get(t.Context(), begin, append(clientv3.WithLastRev(), clientv3.WithKeysOnly())...)
	if err != nil || len(last.Kvs) != 1 {
		t.Fatalf("the last change: %v, %v", last, err)
	}
	type revision struct {
		id store.ID
		at int64
	}
	heads, times := make(map[revision]string), make(map[revision]float64)
	var order []revision
	number := func(v string) float64 { return float64(binary.BigEndian.Uint64([]byte(v))) }
	seen := int64(0)
	for reply := range client.Watch(t.Context(), begin, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		check.Require(t, reply.Err())
		for _, e := range reply.Events {
			key, v := string(e.Kv.Key[len(begin):]), string(e.Kv.Value)
			at := revision{store.ID([]byte(key[:16])), e.Kv.ModRevision}
			switch key[17:] {
			case "h":
				heads[at] = v
				order = append(order, at)
			case "c":
				times[at] = number(v[:8])
			}
			seen = e.Kv.ModRevision
		}
		if seen >= last.Kvs[0].ModRevision {
			break
		}
	}
	known := make(map[store.ID]lastKnown)
	for _, at := range order {
		v := heads[at]
		was, is := known[at.id], tokenOf(v)
		if was.token != is {
			changes = append(changes, tokenChange{at.id, was.token, is, was.due > times[at]})
		}
		known[at.id] = lastKnown{is, number(v[13:21])}
	}
	return changes
}
