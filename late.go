package semel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// late holds what could not be recorded and tries it again, with the same
// token, on one goroutine that lives while there is something to do.
type late struct {
	mu       sync.Mutex
	items    []lateItem
	reserved int // places for items that are about to be added
	running  bool
	cancel   context.CancelFunc
	idle     chan struct{} // closed when the goroutine has ended
}

// lateItem is one wish that is still to be recorded.
type lateItem struct {
	record store.Record // as it was claimed
	event  event
	beats  *heart // goes on beating meanwhile, so that nobody takes over
	quiet  bool   // nothing was run: nobody needs to know
	// void is, for a claim that is given back, what keeps it from coming in
	// force later, where what it was asked of still stands.
	void event
	from store.Token
}

func (i lateItem) stop() {
	if i.beats != nil {
		i.beats.stop()
	}
}

// keepLate puts an item on the list. A full list drops it: the lease then
// decides.
func (c *Core) keepLate(ctx context.Context, item lateItem, why error) {
	l := &c.late
	if c.options.Journal != nil && !item.quiet {
		if err := c.options.Journal.Keep(entryOf(item)); err != nil {
			why = fmt.Errorf("%w; journal: %w", why, err)
		}
	}
	if !l.reserve(c.options.MaxLate) {
		item.stop()
		c.seeLate(ctx, EventLateDropped, item, why)
		return
	}
	c.seeLate(ctx, EventLate, item, why) // before it can be recorded
	if item.beats != nil {
		item.beats.alone()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
	l.items = append(l.items, item)
	if !l.running {
		l.running = true
		l.idle = make(chan struct{})
		var run context.Context
		run, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
		idle := l.idle
		c.lanes.run("record late", func() { l.run(run, c, idle) })
	}
}

// reserve reports whether there is room for one more item, which it then keeps.
func (l *late) reserve(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items)+l.reserved >= most {
		return false
	}
	l.reserved++
	return true
}

// run tries every item until it is recorded or lost.
func (l *late) run(ctx context.Context, c *Core, idle chan struct{}) {
	defer close(idle)
	wait := 50 * time.Millisecond
	for {
		l.mu.Lock()
		if len(l.items) == 0 || ctx.Err() != nil {
			l.running = false
			l.rest() // also of what was being tried when stop was called
			l.mu.Unlock()
			return
		}
		item := l.items[0]
		l.items = l.items[1:]
		l.mu.Unlock()
		if c.tryLate(ctx, item) {
			wait = 50 * time.Millisecond
			continue
		}
		l.mu.Lock()
		l.items = append(l.items, item)
		l.mu.Unlock()
		_ = pause(ctx, jitter(wait))
		wait = min(2*wait, 5*time.Second)
	}
}

// tryLate reports whether the store has answered, whatever it said.
func (c *Core) tryLate(ctx context.Context, item lateItem) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.recordLate(ctx, item)
	if err != nil {
		return false
	}
	item.stop()
	if c.options.Journal != nil && !item.quiet {
		err = c.options.Journal.Drop(item.record.ID, item.record.Token)
	}
	switch {
	case d.say == sayTry:
		c.seeLate(ctx, EventLateRecorded, item, err)
	case item.event.step == stepSucceed && now.State != store.Succeeded:
		c.seeLate(ctx, EventConflict, item, err)
	default:
		c.seeLate(ctx, EventFenced, item, err)
	}
	return true
}

// recordLate asks for what an item is about.
func (c *Core) recordLate(ctx context.Context, item lateItem) (decision, store.Record, error) {
	if item.quiet {
		return c.giveBack(ctx, item)
	}
	return c.end(ctx, item.record, item.event)
}

// giveBack ends a claim that may have been granted although nobody heard of it. One
// that has not arrived finds another token where it was asked of; one that arrives
// while that is seen to is ended after all.
func (c *Core) giveBack(ctx context.Context, item lateItem) (decision, store.Record, error) {
	for {
		d, now, err := c.end(ctx, item.record, item.event)
		if err != nil || d.say == sayTry || now.Token != item.from || now.State.Unfinished() {
			return d, now, err
		}
		if _, now, err = c.certify(ctx, now, item.void); err != nil || now.Token != item.record.Token {
			return d, now, err
		}
	}
}

func (c *Core) seeLate(ctx context.Context, kind EventKind, item lateItem, err error) {
	if !item.quiet {
		c.see(ctx, kind, item.record, err)
	}
}

// drain waits until nothing is left to record.
func (l *late) drain(ctx context.Context) error {
	l.mu.Lock()
	idle, running := l.idle, l.running
	l.mu.Unlock()
	if !running {
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

// stop gives up what is left: the journal has it, or the lease decides.
func (l *late) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
	l.rest()
}

// rest ends the heartbeats of all that is on the list.
func (l *late) rest() {
	for _, item := range l.items {
		item.stop()
	}
}

// giveUp sees to a claim that had no answer. One that is on its way with others' is
// waited for: what became of it is then known.
func (q *ask) giveUp(ctx context.Context, claim store.Change, before store.Record, err error) {
	on := left(err)
	if on == nil {
		q.undo(ctx, claim, before)
		return
	}
	q.c.open.Add(1) // the asker is in still
	q.c.lanes.run("give up", func() {
		defer q.c.leave()
		answer, err := on.Wait()
		switch {
		case err != nil, answer.InForce(claim) && !q.release(ctx, claim, before):
			q.undo(ctx, claim, before)
		}
	})
}

// release gives back a claim that is known to stand, together with the changes of
// others, and reports whether the store has answered.
func (q *ask) release(ctx context.Context, claim store.Change, before store.Record) bool {
	if claim.To.State != store.InProgress {
		return true
	}
	claimed := standing(claim, before)
	now, e, d := claimed, q.released(claim, before), decision{}
	ctx, cancel := q.c.bounded(ctx)
	defer cancel()
	return q.c.endAmong(ctx, func() store.Record { return claimed }, &now, &e, &d) == nil
}

// released is the end of a claim that nothing was run for.
func (q *ask) released(claim store.Change, before store.Record) event {
	return event{
		step: stepRelease, token: claim.To.Token, policy: q.attempt.policy, proven: true, expire: q.attempt.times.retention,
		outcome: q.c.interruption(q.call.op, before, claim.To.Attempt, ErrUnavailable),
	}
}

// undo gives back a claim that may have been granted although its answer never
// came, and one that may yet be. Nothing was run, which is proof.
func (q *ask) undo(ctx context.Context, claim store.Change, before store.Record) {
	if claim.To.State != store.InProgress {
		return
	}
	release := q.released(claim, before)
	void := event{
		step: stepVoid, to: store.Pending, owner: newOwner(), policy: q.attempt.policy, of: q.call,
		identity: q.call.identity(), expire: q.attempt.times.retention, outcome: release.outcome,
	}
	q.c.keepLate(ctx, lateItem{
		record: standing(claim, before), quiet: true, event: release, void: void, from: claim.If,
	}, ErrUnavailable)
}
