package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

type runFunc = func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error)

type batchFunc = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error)

type joinFunc = func(ctx context.Context, cs []store.Change, more func() []store.Change) ([]store.SwapResult, error)

type effectFunc = func(ctx context.Context, tx *memory.Tx, key string) error

// hooked is the memory store with one changed behaviour. Methods without a hook are
// correct.
type hooked struct {
	*memory.Store
	isolation

	swapOne        func(c store.Change) (store.SwapResult, error) // makes each change separately
	alone          bool                                           // swapOne is for single changes only
	twice          bool                                           // batches with a duplicate ID are applied
	many           bool                                           // batches of any size are applied
	twiceTx        bool                                           // duplicate IDs in a transaction are applied
	answers        func(cs []store.Change, as []store.SwapResult) ([]store.SwapResult, error)
	reads          func(r *store.Record) // changes every record that is read
	get            func(ids []store.ID, as []store.SwapResult) []store.SwapResult
	scan           func(q *store.Query)
	purge          func(ctx context.Context, limit int) (int, error)
	dequeue        func(ctx context.Context, d store.Dequeue) ([]store.Record, error)
	notes          func(ns []store.Note) []store.Note
	noted          func(c store.Change, n store.Note)
	count          func(r store.Record, c *store.Count) // changes the count that contains the record
	atomic         func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error)
	batch          batchFunc
	swapTx         func(tx *memory.Tx, cs []store.Change) []store.Change
	effect         func(write effectFunc) effectFunc // replaces Subject.Effect
	join           joinFunc                          // nil: changes cannot join a Swap
	caps           func(c *store.Capabilities)
	writesAfterEnd bool // SwapTx writes after its transaction has ended
	begins         bool // the program begins transactions

	armed     atomic.Bool                                                       // the next reply is lost
	driver    func(cs []store.Change, as []store.SwapResult) []store.SwapResult // the driver's own retry
	committed func(id store.ID) (store.Verdict, error)                          // the answer to a commit whose reply was lost
	denies    bool                                                              // a batch whose reply was lost is reported as not committed
	drops     func(c store.Change) bool                                         // such commits are dropped with their reply and reported as made

	clock func() time.Time // the store's
	mu    sync.Mutex       // guards the state of hooks
	lost  uint64           // the owner of the last Dequeue whose reply was lost; guarded by mu
	race  *race
}

func (h *hooked) Swap(ctx context.Context, cs []store.Change) ([]store.SwapResult, error) {
	defer h.race.notify()
	if h.away.Load() {
		return h.swapIsolated(ctx, cs)
	}
	as, err := h.plainSwap(ctx, cs)
	if err != nil {
		return nil, err
	}
	if h.loses() {
		if h.driver == nil {
			return nil, errBroken
		}
		if as, err = h.plainSwap(ctx, cs); err == nil {
			as = h.driver(cs, as)
		}
		return as, err
	}
	if h.answers != nil {
		if as, err = h.answers(cs, as); err != nil {
			return nil, err
		}
	}
	return h.shown(as), nil
}

func (h *hooked) plainSwap(ctx context.Context, cs []store.Change) ([]store.SwapResult, error) {
	if h.swapOne == nil || h.alone && len(cs) > 1 || len(cs) > 1000 && !h.many || namesTwice(cs) && !h.twice {
		return h.Store.Swap(ctx, cs)
	}
	as := make([]store.SwapResult, len(cs))
	for i, c := range cs {
		var err error
		if as[i], err = h.swapOne(c); err != nil {
			return nil, err
		}
	}
	return as, nil
}

func namesTwice(cs []store.Change) bool {
	ids := make(map[store.ID]bool)
	for _, c := range cs {
		ids[c.To.ID] = true
	}
	return len(ids) < len(cs)
}

func (h *hooked) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	as, err := h.Store.Get(ctx, ids)
	if err != nil {
		return nil, err
	}
	if h.hides(as) {
		return nil, errBroken
	}
	if h.get != nil {
		as = h.get(ids, as)
	}
	return h.shown(as), nil
}

// shown applies h.reads to the records that are read.
func (h *hooked) shown(as []store.SwapResult) []store.SwapResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range as {
		if as[i].Record != nil && h.reads != nil {
			h.reads(as[i].Record)
		}
	}
	return as
}

// remove deletes a record in any state: it makes the record the one that expired
// first, and purges one.
func (h *hooked) remove(id store.ID) bool {
	for {
		now := h.now(id)
		if now.State == store.Absent {
			return false
		}
		c := store.Change{If: now.Token, To: store.Record{ID: id, Expire: -1000 * time.Hour}}
		c.To.Token = store.Token{State: store.Failed, Attempt: now.Attempt, Owner: now.Owner + 1}
		if a, err := h.one(c); err == nil && a.Applied(c) {
			n, err := h.Store.Purge(context.Background(), 1)
			return n == 1 && err == nil
		}
	}
}

func (h *hooked) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	if h.scan != nil {
		h.scan(&q)
	}
	rs, err := h.Store.Scan(ctx, q)
	if h.reads != nil {
		for i := range rs {
			h.reads(&rs[i])
		}
	}
	return rs, err
}

func (h *hooked) Purge(ctx context.Context, limit int) (int, error) {
	purge := h.Store.Purge
	if h.purge != nil {
		purge = h.purge
	}
	n, err := purge(ctx, limit)
	if err == nil && h.loses() {
		return 0, errBroken
	}
	return n, err
}

func (h *hooked) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	dequeue := h.Store.Dequeue
	if h.away.Load() {
		return h.dequeueIsolated(ctx, d)
	}
	if h.dequeue != nil {
		dequeue = h.dequeue
	}
	rs, err := dequeue(ctx, d)
	if err == nil && len(rs) > 0 && h.loses() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lost = d.Owner
		return nil, errBroken
	}
	return rs, err
}

func (h *hooked) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	if h.noted != nil {
		h.noted(c, n)
	}
	a, err := h.Store.SwapNoted(ctx, c, n)
	if err == nil && h.loses() {
		return store.SwapResult{}, errBroken
	}
	return a, err
}

func (h *hooked) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	ns, err := h.Store.Notes(ctx, id)
	if h.notes != nil {
		ns = h.notes(ns)
	}
	return ns, err
}

// Counts applies h.count to the records of each count.
func (h *hooked) Counts(ctx context.Context) ([]store.Count, error) {
	counts, err := h.Store.Counts(ctx)
	if h.count == nil || err != nil {
		return counts, err
	}
	for i := range counts {
		rs, err := h.Store.Scan(ctx, store.Query{State: counts[i].State, Operation: counts[i].Operation})
		if err != nil {
			return nil, err
		}
		for _, r := range rs {
			h.count(r, &counts[i])
		}
	}
	return counts, nil
}

func (h *hooked) Atomic(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
	defer h.race.notify()
	atomically := h.Store.Atomic
	if h.away.Load() {
		return h.atomicIsolated(ctx, id, hold, run)
	}
	if h.atomic != nil {
		atomically = h.atomic
	}
	dropped := false
	verdict, err := atomically(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		c, err := run(ctx, tx, current)
		if c != nil && h.drops != nil && h.drops(*c) && h.loses() {
			dropped = true
			return nil, errBroken
		}
		return c, err
	})
	switch {
	case dropped:
		return store.Committed, nil
	case verdict != store.Committed || !h.loses():
		return verdict, err
	case h.committed != nil:
		return h.committed(id)
	default:
		return store.Unknown, errBroken
	}
}

func (h *hooked) AtomicBatch(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
	send := h.Store.AtomicBatch
	if h.away.Load() {
		return h.batchIsolated(ctx, c, hold, b)
	}
	if h.batch != nil {
		send = h.batch
	}
	answer, verdict, err := send(ctx, c, hold, b)
	switch {
	case verdict != store.Committed || !h.loses():
		return answer, verdict, err
	case h.denies:
		return store.SwapResult{}, store.NotCommitted, errBroken
	default:
		return store.SwapResult{}, store.Unknown, errBroken
	}
}

func (h *hooked) SwapTx(ctx context.Context, tx *memory.Tx, cs []store.Change) ([]store.SwapResult, error) {
	if h.swapTx != nil {
		cs = h.swapTx(tx, slices.Clone(cs))
	}
	if !h.twiceTx {
		as, err := h.Store.SwapTx(ctx, tx, cs)
		if h.writesAfterEnd && errors.Is(err, memory.ErrTxDone) {
			return h.Store.Swap(ctx, cs)
		}
		return as, err
	}
	var as []store.SwapResult
	for _, c := range cs {
		a, err := h.Store.SwapTx(ctx, tx, []store.Change{c})
		if err != nil {
			return nil, err
		}
		as = append(as, a...)
	}
	return as, nil
}

// errBroken is the client's error for a lost reply.
var errBroken = errors.New("connection broken")

// lose implements Subject.Lose as a connection to the store would.
func (h *hooked) lose() (lost func() bool) {
	h.armed.Store(true)
	return func() bool { return !h.armed.Swap(false) }
}

func (h *hooked) loses() bool { return h.armed.CompareAndSwap(true, false) }

// one makes one change in the real store.
func (h *hooked) one(c store.Change) (store.SwapResult, error) {
	as, err := h.Store.Swap(context.Background(), []store.Change{c})
	if err != nil {
		return store.SwapResult{}, err
	}
	return as[0], nil
}

// now returns the current record, the zero Record if there is none.
func (h *hooked) now(id store.ID) store.Record {
	as, err := h.Store.Get(context.Background(), []store.ID{id})
	if err != nil || as[0].Record == nil {
		return store.Record{}
	}
	return *as[0].Record
}

// changing sets swapOne to a function that may alter the change, given the current
// record.
func (h *hooked) changing(change func(c *store.Change, now store.Record)) {
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		asked := c
		change(&c, h.now(c.To.ID))
		a, err := h.one(c)
		if a.Applied(c) {
			a.Token = asked.To.Token
		}
		return a, err
	}
}

func isBeat(c store.Change) bool   { return c.If == c.To.Token }
func isCreate(c store.Change) bool { return c.If == store.Token{} }
