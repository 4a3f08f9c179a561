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

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Journal keeps outcomes that could not be recorded in the store, across restarts
// of the process. Its methods may be called concurrently.
type Journal interface {
	// Keep stores an entry durably. Storing it again changes nothing.
	Keep(e JournalEntry) error
	// Drop removes the entry of a token. A missing entry is no error.
	Drop(id store.ID, token store.Token) error
	// Entries returns the stored entries.
	Entries() ([]JournalEntry, error)
}

// JournalEntry is an outcome that could not be recorded: the claimed record, and
// the end of its attempt.
type JournalEntry struct {
	Record  store.Record
	Step    string
	Outcome []byte
	Expire  time.Duration
	// Delay is the delay of the next attempt, from the time when the entry is
	// recorded.
	Delay  time.Duration
	Policy uint8
}

func entryOf(i pendingEnd) JournalEntry {
	return JournalEntry{
		Record: i.record, Step: string(i.event.Step), Outcome: i.event.Outcome,
		Expire: i.event.Expire, Delay: i.event.Delay, Policy: uint8(i.event.Policy),
	}
}

func (e JournalEntry) item() pendingEnd {
	ending := protocol.Event{
		Step: protocol.Step(e.Step), Token: e.Record.Token, Owner: newOwner(), Policy: protocol.Policy(e.Policy),
		Outcome: e.Outcome, Expire: e.Expire, Delay: e.Delay, Proven: protocol.Step(e.Step).NeedsProof(),
	}
	return pendingEnd{record: e.Record, event: ending}
}

// restore adds the entries that an earlier process left in the journal.
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

// Settle records one entry of a journal, as the engine that wrote it would have:
// with the same token, within RecordTimeout. It returns the current record, and
// whether that has the entry's outcome, by this call or an earlier one. If not, the
// entry was superseded, and nothing was changed. After [ErrUnavailable] nothing is
// known; calling Settle again is safe. The entry stays in the journal.
func (c *Core) Settle(ctx context.Context, e JournalEntry) (now store.Record, recorded bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.completeAlone(ctx, e.Record, e.item().event)
	if err != nil {
		return now, false, seal(fmt.Errorf("%w: settle: %w", ErrUnavailable, err))
	}
	return now, d.Answer == protocol.Apply, nil
}

var errRestored = errors.New("semel: unrecorded by an earlier process")

// FileJournal is a [Journal] in a file of JSON lines. Each write is synced to the
// disk. Only one process may use a file at a time.
type FileJournal struct {
	mu   sync.Mutex
	path string
	kept map[journalKey]JournalEntry
	torn bool // the last line may be incomplete
}

type journalKey struct {
	ID    store.ID
	Token store.Token
}

func (e *JournalEntry) key() journalKey { return journalKey{e.Record.ID, e.Record.Token} }

// journalLine is a stored entry, or the key of a dropped one.
type journalLine struct {
	Keep *JournalEntry `json:",omitempty"`
	Drop *journalKey   `json:",omitempty"`
}

// OpenFileJournal opens the journal at path, or creates it, and rewrites it without
// dropped entries. It ignores an incomplete last line, which a crash can leave; any
// other damage is an error.
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
		// After an incomplete line, a new one could not be read.
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
