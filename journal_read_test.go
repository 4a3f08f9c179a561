package semel_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func readJournal(t *testing.T, path string) ([]journal.Entry, []*journal.LineError) {
	t.Helper()
	entries, damaged, err := journal.Read(path)
	check.Require(t, err, "ReadFileJournal")
	return entries, damaged
}

// TestReadFileJournalChangesNothing, and gives entries in the order they were
// kept, without those that were dropped.
func TestReadFileJournalChangesNothing(t *testing.T) {
	t.Parallel()
	path, _ := writeJournal(t, 4)
	j := openJournal(t, path)
	dropped := entry(1).Record
	check.Require(t, j.Drop(dropped.ID, dropped.Token))
	for _, n := range []byte{9, 7, 9} {
		check.Require(t, j.Keep(entry(n)))
	}
	before, err := os.ReadFile(path)
	check.Require(t, err)
	entries, damaged := readJournal(t, path)
	last := entries[len(entries)-2:]
	want := []journal.Entry{entry(9), entry(7)}
	if diff := cmp.Diff(want, last); diff != "" || len(entries) != 5 || len(damaged) != 0 {
		t.Errorf("%d entries and damage %v, the last two (-want +got):\n%s", len(entries), damaged, diff)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file is %q, %v, want it as it was", after, err)
	}
}

// TestReadFileJournalReportsUnreadableLines: every unreadable line is reported, and
// the other lines are read.
func TestReadFileJournalReportsUnreadableLines(t *testing.T) {
	t.Parallel()
	path, text := writeJournal(t, 2)
	half := text[:len(text)/4]
	whole := append([]byte("nonsense\n"), text...)
	whole = append(append(whole, "{}\n"...), half...)
	check.Require(t, os.WriteFile(path, whole, 0o600))
	entries, damaged := readJournal(t, path)
	check.Equal(t, len(entries), 2, "entries are read")
	var lines []int
	for _, d := range damaged {
		lines = append(lines, d.Line)
	}
	if diff := cmp.Diff([]int{1, 4, 5}, lines); diff != "" {
		t.Fatalf("reported lines (-want +got):\n%s", diff)
	}
	for _, d := range damaged {
		if cut := errors.Is(d, io.ErrUnexpectedEOF); cut != (d.Line == 5) {
			t.Errorf("%v: said to be cut short %v, want that of the last line alone", d, cut)
		}
	}
	if _, err := journal.Open(path); err == nil {
		t.Error("OpenFileJournal of a damaged journal: nil, want an error")
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(whole) {
		t.Errorf("the file is %q, %v, want it as it was: what cannot be read is not lost", after, err)
	}
}

// TestOpenFileJournalKeepsUnknownLines: a line of a program that knows more
// is damage, and not rewritten away.
func TestOpenFileJournalKeepsUnknownLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	check.Require(t, os.WriteFile(path, []byte("{\"Later\":{}}\n"), 0o600))
	_, err := journal.Open(path)
	if line, ok := errtype.Find[*journal.LineError](err); !ok || line.Line != 1 {
		t.Errorf("OpenFileJournal: %v, want an error that names line 1", err)
	}
}

func TestReadFileJournalOfAnotherFile(t *testing.T) {
	t.Parallel()
	if _, _, err := journal.Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFileJournal of no file: %v, want fs.ErrNotExist", err)
	}
	if _, _, err := journal.Read(t.TempDir()); err == nil {
		t.Error("ReadFileJournal of a directory: nil, want an error")
	}
}

// leaveEntry makes a process that cannot record how call ended, and returns the
// journal's one entry.
func leaveEntry(t *testing.T, mem *memory.Store, call semel.Call, v string, err error) journal.Entry {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	p := start(t, mem, semel.Options{Journal: openJournal(t, path), Lease: time.Minute})
	do(t.Context(), p, call, func(context.Context) (string, error) { p.crash(); return v, err })
	entries, _ := readJournal(t, path)
	if len(entries) != 1 {
		t.Fatalf("the journal has %d entries, want 1", len(entries))
	}
	return entries[0]
}

// TestSettleRecordsAnEntry: repeating it changes nothing.
func TestSettleRecordsAnEntry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		v     string
		err   error
		state store.State
	}{
		"success": {v: "v", state: store.Succeeded},
		"failure": {err: semel.Final(errBoom), state: store.Failed},
		"refusal": {err: semel.NotCommitted(errBoom), state: store.Pending},
		"doubt":   {err: errBoom, state: store.InDoubt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				e := leaveEntry(t, mem, call, tt.v, tt.err)
				p := start(t, mem, semel.Options{})
				now, recorded, err := admin.Settle(t.Context(), p, e)
				if err != nil || !recorded || now.State != tt.state {
					t.Errorf("Settle = %v, %v, %v, want %v recorded", now.State, recorded, err, tt.state)
				}
				if tt.state.Final() {
					if now, recorded, err := admin.Settle(t.Context(), p, e); err != nil || !recorded || now.State != tt.state {
						t.Errorf("Settle again = %v, %v, %v, want the same", now.State, recorded, err)
					}
				}
				wantState(t, mem, call, tt.state)
			})
		})
	}
}

// TestSettleTooLate: a later change of the record stays.
func TestSettleTooLate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		meanwhile existingState
		err       error
		want      store.State
	}{
		"no record":                 {nothing, nil, store.Absent},
		"failed by others":          {failed, nil, store.Failed},
		"a doubt, nothing happened": {inDoubt, semel.NotCommitted(errBoom), store.InDoubt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				e := leaveEntry(t, mem, call, "v", tt.err)
				if tt.meanwhile == inDoubt {
					setInDoubt(t, mem, call)
				} else {
					mem = memory.New(memory.Options{}) // as if others had been there
					createExisting(t, mem, call, tt.meanwhile)
				}
				before := record(t, mem, call)
				p := start(t, mem, semel.Options{})
				now, recorded, err := admin.Settle(t.Context(), p, e)
				if err != nil || recorded || now.State != tt.want {
					t.Errorf("Settle = %v, %v, %v, want %v and nothing recorded", now.State, recorded, err, tt.want)
				}
				if after := record(t, mem, call); after.Token != before.Token {
					t.Errorf("the current record is %+v, want %+v", after.Token, before.Token)
				}
			})
		})
	}
}

// TestSettleWithLostReply: nothing is known, and it says so in time.
func TestSettleWithLostReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		e := leaveEntry(t, mem, call, "v", nil)
		p := start(t, mem, semel.Options{})
		p.hang()
		if _, recorded, err := admin.Settle(t.Context(), p, e); !errors.Is(err, semel.ErrUnavailable) || recorded {
			t.Errorf("Settle = %v, %v, want ErrUnavailable", recorded, err)
		}
		p.faults.Decide(nil)
		if _, recorded, err := admin.Settle(t.Context(), p, e); err != nil || !recorded {
			t.Errorf("Settle = %v, %v, want it recorded", recorded, err)
		}
	})
}

// TestOutcomeFailure: only a Failed record has a failure.
func TestOutcomeFailure(t *testing.T) {
	t.Parallel()
	failure := &semel.Failure{Code: "no_funds", Message: "not enough money"}
	tests := map[string]struct {
		r    store.Record
		want *semel.Failure
	}{
		"failed":    {store.Record{Token: store.Token{State: store.Failed}, Outcome: []byte(`f{"code":"no_funds","message":"not enough money"}`)}, failure},
		"no more":   {store.Record{Token: store.Token{State: store.Failed}}, &semel.Failure{Message: "failed; the record says no more"}},
		"succeeded": {store.Record{Token: store.Token{State: store.Succeeded}, Outcome: []byte(`j1`)}, nil},
		"none":      {},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, (&adapter.Outcome{Record: tt.r}).Failure()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
