package semel_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func openJournal(t *testing.T, path string) *journal.File {
	t.Helper()
	j, err := journal.Open(path)
	check.Require(t, err, "OpenFileJournal")
	return j
}

func wantEntries(t *testing.T, j journal.Journal, want int) []journal.Entry {
	t.Helper()
	entries, err := j.Entries()
	check.Result(len(entries), err)(t, want, "the journal")
	return entries
}

// TestRule09JournalOutlivesTheProcess: the next process records what the one that died knew, or
// an operator does, who may do it twice.
func TestRule09JournalOutlivesTheProcess(t *testing.T) {
	type row struct {
		v       string
		err     error
		p       semel.Policy
		found   existingState
		state   store.State
		tainted bool // the effect of an attempt is unknown
	}
	eachPair(t, map[string]bool{"by the next process": false, "by Settle": true}, map[string]row{
		"success":          {v: "v\x00\n", state: store.Succeeded},
		"failure":          {err: semel.Final(errBoom), state: store.Failed},
		"refusal":          {err: semel.NotCommitted(errBoom), state: store.Pending},
		"doubt":            {err: errBoom, state: store.InDoubt},
		"requeue":          {err: errBoom, p: semel.Keyed(), state: store.Pending, tainted: true},
		"requeue, Atomic":  {err: errBoom, p: semel.Atomic(), state: store.Pending, tainted: true},
		"tainted failure":  {found: expired, err: semel.Final(errBoom), p: semel.AtLeastOnce(), state: store.InDoubt, tainted: true},
		"certain failure":  {found: expired, err: semel.Final(errBoom), p: semel.Keyed(), state: store.Failed, tainted: true},
		"success of Keyed": {v: "v", p: semel.Keyed(), state: store.Succeeded},
	}, func(t *testing.T, settles bool, end row) {
		mem := memory.New(memory.Options{})
		path := filepath.Join(t.TempDir(), "journal")
		call := plain("op", semel.OperationOptions[string]{Policy: end.p}).Call(me, "key \xff of any bytes", "in")
		createExisting(t, mem, call, end.found)
		first := start(t, mem, semel.Options{Journal: openJournal(t, path), Lease: time.Hour})
		do(t.Context(), first, call, func(context.Context) (string, error) { first.crash(); return end.v, end.err })
		left := wantEntries(t, openJournal(t, path), 1)
		var second *process
		if settles {
			second = start(t, mem, semel.Options{})
			wantEntrySettled(t, second, left[0], end.state, true)
			if end.state.Final() {
				wantEntrySettled(t, second, left[0], end.state, true)
			}
		} else {
			second = start(t, mem, semel.Options{Journal: openJournal(t, path)})
			pass(time.Minute)
			second.seen.want(t, event.Late, event.LateRecorded)
			wantEntries(t, openJournal(t, path), 0)
		}
		check.Equal(t, wantState(t, mem, call, end.state).Tainted, end.tainted, "tainted")
		if end.err == nil {
			do(t.Context(), second, call, never(t)).want(t, end.v, true)
		}
	})
}

// TestRule09JournalAfterTheLease: the doubt that others recorded meanwhile is
// settled by what the journal knows.
func TestRule09JournalAfterTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		path := filepath.Join(t.TempDir(), "journal")
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		first := start(t, mem, semel.Options{Journal: openJournal(t, path)})
		do(t.Context(), first, call, outageAfter(first, "v", fault{Before: errDead})).want(t, "v", false)
		pass(2 * lease)
		do(t.Context(), start(t, mem, semel.Options{}), call, never(t)).wantErr(t, semel.ErrInDoubt)
		second := start(t, mem, semel.Options{Journal: openJournal(t, path)})
		pass(time.Minute)
		do(t.Context(), second, call, never(t)).want(t, "v", true)
	})
}

// TestRule09JournalHasDroppedOutcomes: a full list drops what the journal keeps
// for the next process.
func TestRule09JournalHasDroppedOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		path := filepath.Join(t.TempDir(), "journal")
		first := start(t, mem, semel.Options{Journal: openJournal(t, path), MaxUnrecorded: 1})
		first.faults.Decide(func(r request) fault { return fault{Hang: r.To() == store.Succeeded} })
		op := plain("op", semel.OperationOptions[string]{})
		for _, key := range []string{"a", "b", "c"} {
			do(t.Context(), first, op.Call(me, key, "in"), returns(key)).want(t, key, false)
		}
		first.seen.want(t, event.LateDropped)
		first.crash()
		second := start(t, mem, semel.Options{Journal: openJournal(t, path)})
		pass(time.Minute)
		for _, key := range []string{"a", "b", "c"} {
			do(t.Context(), second, op.Call(me, key, "in"), never(t)).want(t, key, true)
		}
	})
}

// TestRule09NothingRunIsNotJournaled: a claim without a reply is given back without
// an event.
func TestRule09NothingRunIsNotJournaled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal")
		p, _ := solo(t, semel.Options{Journal: openJournal(t, path)})
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		do(t.Context(), p, plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in"), never(t)).wantErr(t, semel.ErrUnavailable)
		wantEntries(t, openJournal(t, path), 0)
	})
}

// brokenJournal is a Journal that cannot keep, or cannot be read.
type brokenJournal struct{ entries error }

var errDisk = errors.New("disk full")

func (j brokenJournal) Keep(journal.Entry) error          { return errDisk }
func (j brokenJournal) Drop(store.ID, store.Token) error  { return errDisk }
func (j brokenJournal) Entries() ([]journal.Entry, error) { return nil, j.entries }

// TestRule09JournalThatCannotBeWritten: the alarm says so, and what is in memory
// is recorded all the same.
func TestRule09JournalThatCannotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloWith(t, semel.Options{Journal: brokenJournal{}}, semel.OperationOptions[string]{})
		do(t.Context(), p, call, outageAfter(p, "v", fault{Before: errCut})).want(t, "v", false)
		p.faults.Decide(nil)
		pass(time.Minute)
		wantState(t, p.mem, call, store.Succeeded)
		p.seen.want(t, event.Late, event.LateRecorded)
		for _, e := range p.seen.all() {
			if (e.Kind == event.Late || e.Kind == event.LateRecorded) && !errors.Is(e.Err, errDisk) {
				t.Errorf("%q says %v, want the journal's error too", e.Kind, e.Err)
			}
		}
	})
}

func TestRule09JournalThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Journal: brokenJournal{entries: errDisk}})
	if !errors.Is(err, errDisk) {
		t.Errorf("New: %v, want the journal's error", err)
	}
}

func entry(n byte) journal.Entry {
	r := store.Record{ID: store.ID{n}, Token: store.Token{State: store.InProgress, Attempt: 1, Owner: uint64(n)}}
	return journal.Entry{Record: r, Step: "succeed", Outcome: []byte(`j"v"`)}
}

// writeJournal writes n entries and returns the file.
func writeJournal(t *testing.T, n byte) (path string, text []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	for i := range n {
		check.Require(t, j.Keep(entry(i)), "Keep")
	}
	text = check.Must(os.ReadFile(path))(t)
	return path, text
}

func TestRule09JournalKeepsAndDrops(t *testing.T) {
	t.Parallel()
	path, _ := writeJournal(t, 5)
	j := openJournal(t, path)
	wantEntries(t, j, 5)
	kept := entry(1).Record
	for range 2 { // dropping what is not there is no error
		check.NoError(t, j.Drop(kept.ID, kept.Token), "Drop")
	}
	if err := j.Keep(entry(2)); err != nil { // keeping it again changes nothing
		t.Errorf("Keep: %v", err)
	}
	wantEntries(t, j, 4)
	before, _ := os.Stat(path)
	if diff := cmp.Diff([]journal.Entry{entry(0), entry(2), entry(3), entry(4)}, wantEntries(t, openJournal(t, path), 4)); diff != "" {
		t.Errorf("the entries in the order in which they were kept, without the dropped one (-want +got):\n%s", diff)
	}
	if after, _ := os.Stat(path); after.Size() >= before.Size() {
		t.Errorf("opened again it has %d bytes, want it rewritten to less than %d", after.Size(), before.Size())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v; want it readable by its owner alone", info.Mode(), err)
	}
}

// TestRule09JournalLastLineCutShort, anywhere: what was whole is there, and
// what is written next is too.
func TestRule09JournalLastLineCutShort(t *testing.T) {
	t.Parallel()
	_, text := writeJournal(t, 2)
	first := bytes.IndexByte(text, '\n') + 1
	for _, cut := range []int{first, first + 1, (first + len(text)) / 2, len(text) - 2, len(text) - 1} {
		path := filepath.Join(t.TempDir(), "journal")
		check.Require(t, os.WriteFile(path, text[:cut], 0o600))
		j := openJournal(t, path)
		wantEntries(t, j, 1)
		check.NoError(t, j.Keep(entry(9)), "Keep")
		wantEntries(t, openJournal(t, path), 2)
	}
}

// TestRule09JournalWithInvalidPath: a file cannot be there, and nothing
// pretends that it is.
func TestRule09JournalWithInvalidPath(t *testing.T) {
	t.Parallel()
	if _, err := journal.Open(filepath.Join(t.TempDir(), "no", "such", "place")); err == nil {
		t.Error("OpenFileJournal in no directory: nil, want an error")
	}
	if _, err := journal.Open(t.TempDir()); err == nil {
		t.Error("OpenFileJournal of a directory: nil, want an error")
	}
	dir := filepath.Join(t.TempDir(), "gone")
	check.Require(t, os.Mkdir(dir, 0o700))
	j := openJournal(t, filepath.Join(dir, "journal"))
	check.Require(t, os.RemoveAll(dir))
	check.Fails(t, j.Keep(entry(1)), "Keep without a place")
	wantEntries(t, j, 0)
}

// TestRule09JournalAfterAWriteThatFailed: half a line of it may be there, and
// what is written next can be read all the same.
func TestRule09JournalAfterAWriteThatFailed(t *testing.T) {
	t.Parallel()
	path, text := writeJournal(t, 1)
	j := openJournal(t, path)
	check.Require(t, os.Remove(path))
	check.Require(t, os.Mkdir(path, 0o700))
	for range 2 { // rewriting it fails as well
		check.Fails(t, j.Keep(entry(1)), "Keep in a directory")
	}
	check.Require(t, os.Remove(path))
	check.Require(t, os.WriteFile(path, append(text, text[:len(text)/2]...), 0o600))
	check.NoError(t, j.Keep(entry(2)), "Keep")
	for _, e := range wantEntries(t, openJournal(t, path), 2) {
		if e.Record.ID != entry(0).Record.ID && e.Record.ID != entry(2).Record.ID {
			t.Errorf("%v is kept, want the first and the last", e.Record.ID)
		}
	}
}

// TestRule09JournalKeepsTheDelay of an attempt that is to be tried again, and its
// history.
func TestRule09JournalKeepsTheDelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		path := filepath.Join(t.TempDir(), "journal")
		call := task(semel.AtLeastOnce(), 9, 9).Call(me, "k", "in")
		first := start(t, mem, semel.Options{Journal: openJournal(t, path), Lease: time.Hour})
		do(t.Context(), first, call, func(context.Context) (string, error) {
			first.crash()
			return "", semel.RetryIn(errBoom, 10*time.Minute)
		})
		wantEntries(t, openJournal(t, path), 1)
		start(t, mem, semel.Options{Journal: openJournal(t, path)})
		pass(time.Minute)
		r := wantState(t, mem, call, store.Pending)
		if r.Due < 8*time.Minute || r.Due > 10*time.Minute || !r.Tainted {
			t.Errorf("due in %v, tainted %v; want about ten minutes, and tainted", r.Due, r.Tainted)
		}
		wantTries(t, progress(t, mem, call), admin.TryError)
	})
}
