package semel

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// keepUnrecorded adds an item to the list. If the list is full, the item is
// dropped, and its lease decides.
func (c *Core) keepUnrecorded(ctx context.Context, item pendingEnd, why error) {
	l := &c.unrecorded
	if c.options.Journal != nil && !item.silent {
		if err := c.options.Journal.Keep(entryOf(item)); err != nil {
			why = fmt.Errorf("%w; journal: %w", why, err)
		}
	}
	if !l.reserve(c.options.MaxUnrecorded) {
		item.stop()
		c.emitPending(ctx, event.LateDropped, item, why)
		return
	}
	c.emitPending(ctx, event.Late, item, why) // before the item can be recorded
	if item.renewer != nil {
		item.renewer.renewAlone()
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.add(&item, cancel)
	c.batching.goRun("record late", func() {
		defer l.remove(&item)
		c.recordUntilDone(run, item)
	})
}

// recordUntilDone tries an item until it is recorded or superseded, or ctx ends.
func (c *Core) recordUntilDone(ctx context.Context, item pendingEnd) {
	defer item.stop()
	if c.tryPending(ctx, item) {
		return
	}
	for wait := firstRetryWait; pause(ctx, jitter(wait)) == nil; wait = min(2*wait, maxRetryWait) {
		select {
		case c.unrecorded.retries <- struct{}{}:
		case <-ctx.Done():
			return
		}
		done := c.tryPending(ctx, item)
		<-c.unrecorded.retries
		if done {
			return
		}
	}
}

// tryPending reports whether the store has answered.
func (c *Core) tryPending(ctx context.Context, item pendingEnd) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.recordPending(ctx, item)
	if err != nil {
		return false
	}
	item.stop()
	if c.options.Journal != nil && !item.silent {
		err = c.options.Journal.Drop(item.record.ID, item.record.Token)
	}
	switch {
	case d.Answer == protocol.Apply:
		c.emitPending(ctx, event.LateRecorded, item, err)
	case protocol.Contradicts(item.event.Step, &now):
		c.emitPending(ctx, event.Conflict, item, err)
	default:
		c.emitPending(ctx, event.Fenced, item, err)
	}
	return true
}

// recordPending records the item's end.
func (c *Core) recordPending(ctx context.Context, item pendingEnd) (protocol.Decision, store.Record, error) {
	if item.silent {
		return c.releaseOrVoid(ctx, item)
	}
	return c.writer.completeAlone(ctx, item.record, item.event)
}

// releaseOrVoid ends a claim that may have been applied although its reply was
// lost. If the claim has not been applied, it voids the claim; if the claim is
// applied meanwhile, it releases the claim.
func (c *Core) releaseOrVoid(ctx context.Context, item pendingEnd) (protocol.Decision, store.Record, error) {
	for {
		d, now, err := c.writer.completeAlone(ctx, item.record, item.event)
		if err != nil || d.Answer == protocol.Apply || now.Token != item.from || now.State.Unfinished() {
			return d, now, err
		}
		if _, now, err = c.writer.prove(ctx, now, item.void); err != nil || now.Token != item.record.Token {
			return d, now, err
		}
	}
}

func (c *Core) emitPending(ctx context.Context, kind event.Kind, item pendingEnd, err error) {
	if !item.silent {
		c.emit(ctx, kind, item.record, err)
	}
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

var errRestored = errors.New("semel: unrecorded by an earlier process")

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
