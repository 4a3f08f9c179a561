package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/callerr"
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
	d, now, err := c.writer.completeAlone(ctx, e.Record, e.item().event)
	if err != nil {
		return now, false, callerr.Seal(fmt.Errorf("%w: settle: %w", callerr.ErrUnavailable, err))
	}
	return now, d.Answer == protocol.Apply, nil
}

var errRestored = errors.New("semel: unrecorded by an earlier process")
