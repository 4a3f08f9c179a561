package semel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// Journal keeps, across restarts of the process, outcomes that could not be
// recorded in the store. Its methods may be called concurrently.
type Journal interface {
	// Keep remembers an entry, durably. Keeping it again changes nothing.
	Keep(e JournalEntry) error
	// Drop forgets the entry of a token. Dropping what is not there is no error.
	Drop(id store.ID, token store.Token) error
	// Entries returns what is kept.
	Entries() ([]JournalEntry, error)
}

// JournalEntry is an outcome that could not be recorded: the record as it was
// claimed, and how its attempt ended.
type JournalEntry struct {
	Record  store.Record
	Step    string
	Outcome []byte
	Expire  time.Duration
	// Delay is how long the next attempt waits, from when this is recorded.
	Delay  time.Duration
	Policy uint8
}

func entryOf(i pendingEnd) JournalEntry {
	return JournalEntry{
		Record: i.record, Step: string(i.event.step), Outcome: i.event.outcome,
		Expire: i.event.expire, Delay: i.event.delay, Policy: uint8(i.event.policy),
	}
}

func (e JournalEntry) item() pendingEnd {
	ending := event{
		step: step(e.Step), token: e.Record.Token, owner: newOwner(), policy: policyKind(e.Policy),
		outcome: e.Outcome, expire: e.Expire, delay: e.Delay, proven: step(e.Step) == stepFail || step(e.Step) == stepRelease,
	}
	return pendingEnd{record: e.Record, event: ending}
}

// restore takes up what an earlier process left in the journal.
func (l *unrecorded) restore(ctx context.Context, c *Core) error {
	if c.options.Journal == nil {
		return nil
	}
	entries, err := c.options.Journal.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		c.keepUnrecorded(ctx, e.item(), errRestored)
	}
	return nil
}

// Settle records one entry of a journal, as the engine that left it would have:
// with the same token, within RecordTimeout. It returns what stands, and whether
// that is what the entry says, by this call or by an earlier one. If it is not,
// somebody else was quicker, and nothing was changed. [ErrUnavailable]: nothing
// is known; settling it again is safe. The journal still has the entry.
func (c *Core) Settle(ctx context.Context, e JournalEntry) (now store.Record, recorded bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.completeAlone(ctx, e.Record, e.item().event)
	if err != nil {
		return now, false, seal(fmt.Errorf("%w: settle: %w", ErrUnavailable, err))
	}
	return now, d.answer == answerApply, nil
}

var errRestored = errors.New("semel: left by an earlier process")

// FileJournal is a [Journal] in one file of JSON lines, each written through to
// the disk. A file belongs to one process at a time.
type FileJournal struct {
	mu   sync.Mutex
	path string
	kept map[journalKey]JournalEntry
	torn bool // the last line may have been written in part
}

type journalKey struct {
	ID    store.ID
	Token store.Token
}

func (e *JournalEntry) key() journalKey { return journalKey{e.Record.ID, e.Record.Token} }

// journalLine is an entry that is kept, or the key of one that was dropped.
type journalLine struct {
	Keep *JournalEntry `json:",omitempty"`
	Drop *journalKey   `json:",omitempty"`
}

// OpenFileJournal reads the journal at path, which need not exist, and rewrites
// it without what was dropped. A last line that a crash cut short is ignored;
// any other damage is an error.
func OpenFileJournal(path string) (*FileJournal, error) {
	j := &FileJournal{path: path, kept: make(map[journalKey]JournalEntry)}
	if err := j.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if err := j.compact(); err != nil {
		return nil, fmt.Errorf("rewrite journal: %w", err)
	}
	return j, nil
}

func (j *FileJournal) read() error {
	return eachLine(j.path, func(line journalLine, damage *JournalLineError) error {
		switch {
		case damage == nil:
			j.apply(line)
		case !errors.Is(damage, io.ErrUnexpectedEOF):
			return damage
		}
		return nil
	})
}

func (j *FileJournal) apply(line journalLine) {
	if line.Keep != nil {
		j.kept[line.Keep.key()] = *line.Keep
	}
	if line.Drop != nil {
		delete(j.kept, *line.Drop)
	}
}

func (j *FileJournal) compact() error {
	temporary := j.path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range j.kept {
		if err := appendLine(temporary, journalLine{Keep: &e}); err != nil {
			return err
		}
	}
	if len(j.kept) == 0 {
		if err := os.WriteFile(temporary, nil, 0o600); err != nil {
			return err
		}
	}
	if err := os.Rename(temporary, j.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.path))
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func appendLine(path string, line journalLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(append(text, '\n'))
	return errors.Join(werr, f.Sync(), f.Close())
}

// Keep implements [Journal].
func (j *FileJournal) Keep(e JournalEntry) error { return j.write(journalLine{Keep: &e}) }

// Drop implements [Journal].
func (j *FileJournal) Drop(id store.ID, token store.Token) error {
	return j.write(journalLine{Drop: &journalKey{id, token}})
}

func (j *FileJournal) write(line journalLine) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn {
		// Written after half a line, this one could not be read.
		if err := j.compact(); err != nil {
			return err
		}
		j.torn = false
	}
	if err := appendLine(j.path, line); err != nil {
		j.torn = true
		return err
	}
	j.apply(line)
	return nil
}

// Entries implements [Journal].
func (j *FileJournal) Entries() ([]JournalEntry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := make([]JournalEntry, 0, len(j.kept))
	for _, e := range j.kept {
		entries = append(entries, e)
	}
	return entries, nil
}
