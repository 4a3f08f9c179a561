package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// unrecorded holds ends that could not be recorded and retries them with the same
// token. Each has its own goroutine and backoff, so that one that fails for long,
// because its record is locked for instance, does not delay the others.
type unrecorded struct {
	c       *Core
	retries chan struct{} // limits the connections of repeated tries

	mu    sync.Mutex
	items map[*pendingEnd]context.CancelFunc
	idle  chan struct{} // closed when there are no items
}

const (
	// unrecordedRetries is the number of concurrent repeated tries.
	unrecordedRetries = 4

	firstRetryWait = 50 * time.Millisecond
	maxRetryWait   = 5 * time.Second
)

func (l *unrecorded) open(c *Core) {
	l.c, l.retries, l.items = c, make(chan struct{}, unrecordedRetries), make(map[*pendingEnd]context.CancelFunc)
}

// pendingEnd is an end that is not recorded yet.
type pendingEnd struct {
	record  store.Record // the claimed record
	event   protocol.Event
	renewer renewer // renews the lease meanwhile, so that no takeover happens; nil: none
	silent  bool    // nothing was run, so no event is emitted
	// void is set for a claim that is given back: it keeps the claim from being
	// applied later, if the record has not changed since.
	void protocol.Event
	from store.Token
}

// renewer renews the lease of an attempt that has ended.
type renewer interface {
	renewAlone()
	stop()
}

func (i pendingEnd) stop() {
	if i.renewer != nil {
		i.renewer.stop()
	}
}

// add adds an item, if there is a place for it.
func (l *unrecorded) add(item *pendingEnd, cancel context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) >= l.c.options.MaxUnrecorded {
		return false
	}
	if len(l.items) == 0 {
		l.idle = make(chan struct{})
	}
	l.items[item] = cancel
	return true
}

func (l *unrecorded) remove(item *pendingEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items[item]()
	delete(l.items, item)
	if len(l.items) == 0 {
		close(l.idle)
	}
}

// drain waits until every item is recorded.
func (l *unrecorded) drain(ctx context.Context) error {
	l.mu.Lock()
	idle, left := l.idle, len(l.items)
	l.mu.Unlock()
	if left == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		l.stop()
		return fmt.Errorf("record late outcomes: %w", ctx.Err())
	}
}

// stop gives up the remaining items: the journal has them, or their leases decide.
// It ends their heartbeats at once.
func (l *unrecorded) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for item, cancel := range l.items {
		cancel()
		item.stop()
	}
}

// keep adds an item to the list. If the list is full, the item is
// dropped, and its lease decides.
func (l *unrecorded) keep(ctx context.Context, item pendingEnd, why error) {
	if kept := l.c.options.Journal; kept != nil && !item.silent {
		if err := kept.Keep(entryOf(item)); err != nil {
			why = fmt.Errorf("%w; journal: %w", why, err)
		}
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if !l.add(&item, cancel) {
		cancel()
		item.stop()
		l.emitPending(ctx, event.LateDropped, item, why)
		return
	}
	l.emitPending(ctx, event.Late, item, why) // before the item can be recorded
	if item.renewer != nil {
		item.renewer.renewAlone()
	}
	l.c.batching.goRun("record late", func() {
		defer l.remove(&item)
		l.recordUntilDone(run, item)
	})
}

// recordUntilDone tries an item until it is recorded or superseded, or ctx ends.
func (l *unrecorded) recordUntilDone(ctx context.Context, item pendingEnd) {
	defer item.stop()
	if l.tryPending(ctx, item) {
		return
	}
	for wait := firstRetryWait; clock.Sleep(ctx, jitter(wait)) == nil; wait = min(2*wait, maxRetryWait) {
		select {
		case l.retries <- struct{}{}:
		case <-ctx.Done():
			return
		}
		done := l.tryPending(ctx, item)
		<-l.retries
		if done {
			return
		}
	}
}

// tryPending reports whether the store has answered.
func (l *unrecorded) tryPending(ctx context.Context, item pendingEnd) bool {
	ctx, cancel := context.WithTimeout(ctx, l.c.options.RecordTimeout)
	defer cancel()
	d, now, err := l.recordPending(ctx, item)
	if err != nil {
		return false
	}
	item.stop()
	if kept := l.c.options.Journal; kept != nil && !item.silent {
		err = kept.Drop(item.record.ID, item.record.Token)
	}
	switch {
	case d.Answer == protocol.Apply:
		l.emitPending(ctx, event.LateRecorded, item, err)
	case protocol.Contradicts(item.event.Step, &now):
		l.emitPending(ctx, event.Conflict, item, err)
	default:
		l.emitPending(ctx, event.Fenced, item, err)
	}
	return true
}

// recordPending records the item's end.
func (l *unrecorded) recordPending(ctx context.Context, item pendingEnd) (protocol.Decision, store.Record, error) {
	if item.silent {
		return l.releaseOrVoid(ctx, item)
	}
	return l.c.writer.completeAlone(ctx, item.record, item.event)
}

// releaseOrVoid ends a claim that may have been applied although its reply was
// lost. If the claim has not been applied, it voids the claim; if the claim is
// applied meanwhile, it releases the claim.
func (l *unrecorded) releaseOrVoid(ctx context.Context, item pendingEnd) (protocol.Decision, store.Record, error) {
	for {
		d, now, err := l.c.writer.completeAlone(ctx, item.record, item.event)
		if err != nil || d.Answer == protocol.Apply || now.Token != item.from || now.State.Unfinished() {
			return d, now, err
		}
		if _, now, err = l.c.writer.prove(ctx, now, item.void); err != nil || now.Token != item.record.Token {
			return d, now, err
		}
	}
}

func (l *unrecorded) emitPending(ctx context.Context, kind event.Kind, item pendingEnd, err error) {
	if !item.silent {
		l.c.emit(ctx, kind, item.record, err)
	}
}

// restore adds the entries that an earlier process left in the journal.
func (l *unrecorded) restore(ctx context.Context) error {
	kept := l.c.options.Journal
	if kept == nil {
		return nil
	}
	entries, err := kept.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		l.keep(ctx, pendingOf(e), errRestored)
	}
	return nil
}

func entryOf(i pendingEnd) journal.Entry {
	return journal.Entry{
		Record: i.record, Step: string(i.event.Step), Outcome: i.event.Outcome,
		Expire: i.event.Expire, Delay: i.event.Delay, Policy: uint8(i.event.Policy),
	}
}

// pendingOf returns the end that a journal has kept.
func pendingOf(e journal.Entry) pendingEnd {
	ending := protocol.Event{
		Step: protocol.Step(e.Step), Token: e.Record.Token, Owner: newOwner(), Policy: protocol.Policy(e.Policy),
		Outcome: e.Outcome, Expire: e.Expire, Delay: e.Delay, Proven: protocol.Step(e.Step).NeedsProof(),
	}
	return pendingEnd{record: e.Record, event: ending}
}

var errRestored = errors.New("semel: unrecorded by an earlier process")
