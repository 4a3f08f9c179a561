package semel_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
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
	before := check.Must(os.ReadFile(path))(t)
	entries, damaged := readJournal(t, path)
	if len(entries) != 5 || len(damaged) != 0 {
		t.Fatalf("%d entries and damage %v, want 5 and none", len(entries), damaged)
	}
	check.NoDiff(t, cmp.Diff([]journal.Entry{entry(9), entry(7)}, entries[3:]), "the entries since it was opened")
	check.Equal(t, string(check.Must(os.ReadFile(path))(t)), string(before), "the file")
}

// TestReadFileJournalReportsUnreadableLines: every unreadable line is reported, and
// the other lines are read.
func TestReadFileJournalReportsUnreadableLines(t *testing.T) {
	t.Parallel()
	path, text := writeJournal(t, 2)
	half := text[:len(text)/4]
	whole := append([]byte("nonsense\n"), text...)
	whole = append(append(whole, "{\"Later\":{}}\n"...), half...)
	check.Require(t, os.WriteFile(path, whole, 0o600))
	entries, damaged := readJournal(t, path)
	check.Equal(t, len(entries), 2, "entries are read")
	cut := map[int]bool{}
	for _, d := range damaged {
		cut[d.Line] = errors.Is(d, io.ErrUnexpectedEOF)
	}
	check.NoDiff(t, cmp.Diff(map[int]bool{1: false, 4: false, 5: true}, cut), "reported lines, and whether they are cut short")
	_, err := journal.Open(path)
	if line, ok := errtype.Find[*journal.LineError](err); !ok || line.Line != 1 || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("Open: %v, want an error that names line 1", err)
	}
	check.Equal(t, string(check.Must(os.ReadFile(path))(t)), string(whole), "the file (what cannot be read is not lost)")
}

func TestReadFileJournalOfAnotherFile(t *testing.T) {
	t.Parallel()
	_, _, err := journal.Read(filepath.Join(t.TempDir(), "none"))
	check.ErrorIs(t, err, fs.ErrNotExist, "Read of no file")
	_, _, err = journal.Read(t.TempDir())
	check.Fails(t, err, "Read of a directory")
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

// wantEntrySettled settles the entry, and checks the record that it leads to.
func wantEntrySettled(t *testing.T, p *process, e journal.Entry, state store.State, recorded bool) {
	t.Helper()
	r, got, err := admin.Settle(t.Context(), p, e)
	if err != nil || got != recorded || r.State != state {
		t.Errorf("Settle = %v, %v, %v, want %v, %v", r.State, got, err, state, recorded)
	}
}

// TestSettleTooLate: a later change of the record stays.
func TestSettleTooLate(t *testing.T) {
	type row struct {
		meanwhile existingState
		err       error
		want      store.State
	}
	tests := map[string]row{
		"no record":                 {nothing, nil, store.Absent},
		"failed by others":          {failed, nil, store.Failed},
		"a doubt, nothing happened": {inDoubt, semel.NotCommitted(errBoom), store.InDoubt},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		mem := memory.New(memory.Options{})
		e := leaveEntry(t, mem, theCall, "v", tt.err)
		if tt.meanwhile == inDoubt {
			setInDoubt(t, mem, theCall)
		} else {
			mem = memory.New(memory.Options{}) // as if others had been there
			createExisting(t, mem, theCall, tt.meanwhile)
		}
		before := record(t, mem, theCall)
		p := start(t, mem, semel.Options{})
		wantEntrySettled(t, p, e, tt.want, false)
		check.Equal(t, record(t, mem, theCall).Token, before.Token, "the current record")
	})
}

// TestSettleWithLostReply: nothing is known, and it says so in time.
func TestSettleWithLostReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		e := leaveEntry(t, mem, theCall, "v", nil)
		p := start(t, mem, semel.Options{})
		p.hang()
		if _, recorded, err := admin.Settle(t.Context(), p, e); !errors.Is(err, semel.ErrUnavailable) || recorded {
			t.Errorf("Settle = %v, %v, want ErrUnavailable", recorded, err)
		}
		p.faults.Decide(nil)
		wantEntrySettled(t, p, e, store.Succeeded, true)
	})
}
