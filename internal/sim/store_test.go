package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestStoreIsTheReferenceStore gives the explorer's store and store/memory the
// same random calls, one after another, and wants the same answers: what is
// explored is what stores do.
func TestStoreIsTheReferenceStore(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		sim, id := freeStore(t)
		p := pair{sim: sim, ref: memory.New(memory.Options{}), id: id, rng: rng, tokens: []store.Token{{}}}
		for range 40 {
			p.step(t)
			if t.Failed() {
				return
			}
		}
	}
}

// freeStore is a store whose calls go through at once.
func freeStore(t *testing.T) (*Store, store.ID) {
	t.Helper()
	s := check.Must(newStage(atLeastOncePlan(), nil))(t)
	w := newWorld(s, new(chooser), new(Marks))
	a := w.enlist(role{name: "F"})
	a.free = true
	a.boot()
	a.proc.running = a
	return a.proc.store, w.rows[0].id
}

// pair is two stores that receive the same calls.
type pair struct {
	sim    *Store
	ref    *memory.Store
	id     store.ID
	rng    *rand.Rand
	tokens []store.Token // that a record ever had, or that a call named
}

func (p *pair) step(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	switch p.rng.IntN(6) {
	case 5:
		p.batch(ctx, t)
	case 4:
		p.dequeue(t)
	case 0:
		got, err1 := p.sim.Get(ctx, []store.ID{p.id})
		want, err2 := p.ref.Get(ctx, []store.ID{p.id})
		p.same(t, "Get", got[0], want[0], err1, err2)
	case 1:
		p.atomic(ctx, t)
	default:
		c := []store.Change{p.change()}
		got, err1 := p.sim.Swap(ctx, c)
		want, err2 := p.ref.Swap(ctx, c)
		p.same(t, "Swap", got[0], want[0], err1, err2)
	}
}

// dequeue claims the record, if it waits, or repeats a call of an earlier owner, with or
// without Reread.
func (p *pair) dequeue(t *testing.T) {
	t.Helper()
	d := store.Dequeue{Operation: "explored", Limit: 1 + p.rng.IntN(2), Owner: p.rng.Uint64() | 1, Lease: time.Hour}
	if p.rng.IntN(2) == 0 {
		d.Owner, d.Reread = p.tokens[p.rng.IntN(len(p.tokens))].Owner, p.rng.IntN(2) == 0
	}
	got, err1 := queueStore{p.sim}.Dequeue(t.Context(), d)
	want, err2 := p.ref.Dequeue(t.Context(), d)
	if len(got) != len(want) {
		t.Fatalf("Dequeue gives %d, reference %d", len(got), len(want))
	}
	for i := range got {
		p.same(t, "Dequeue", standingOf(got[i]), standingOf(want[i]), err1, err2)
		p.tokens = append(p.tokens, got[i].Token)
	}
}

func standingOf(r store.Record) store.SwapResult { return store.SwapResult{Token: r.Token, Record: &r} }

// change is a random one: from a token that may stand, to a new one or to one
// of an earlier call.
func (p *pair) change() store.Change {
	to := store.Token{
		State:   store.States()[p.rng.IntN(5)],
		Attempt: uint32(p.rng.IntN(3)),
		Owner:   p.rng.Uint64() | 1,
	}
	if p.rng.IntN(4) == 0 {
		if old := p.tokens[p.rng.IntN(len(p.tokens))]; old.State != store.Absent {
			to = old
		}
	}
	c := store.Change{If: p.tokens[p.rng.IntN(len(p.tokens))], IfDue: p.rng.IntN(2) == 0}
	if p.rng.IntN(2) == 0 {
		c.If = p.tokens[len(p.tokens)-1]
	}
	c.To = store.Record{
		ID: p.id, Token: to, Due: time.Duration(p.rng.IntN(2)) * time.Hour, Expire: time.Duration(p.rng.IntN(2)) * time.Hour,
		Operation: "explored", Scope: "s", Key: "k", Fingerprint: []byte{byte(p.rng.IntN(2))}, Tainted: p.rng.IntN(2) == 0,
	}
	if p.rng.IntN(2) == 0 {
		c.To.Outcome = []byte{byte(p.rng.IntN(9))}
	}
	p.tokens = append(p.tokens, to)
	return c
}

var errHandler = errors.New("handler")

func (p *pair) atomic(ctx context.Context, t *testing.T) {
	t.Helper()
	c := p.change()
	var change *store.Change
	var fail error
	switch p.rng.IntN(3) {
	case 0:
		change = &c
	case 1:
		change, fail = &c, errHandler
	default:
		fail = errHandler
	}
	var got, want store.SwapResult
	v1, err1 := p.sim.Atomic(ctx, p.id, true, func(_ context.Context, _ *Tx, s store.SwapResult) (*store.Change, error) {
		got = s
		return change, fail
	})
	v2, err2 := p.ref.Atomic(ctx, p.id, true, func(_ context.Context, _ *memory.Tx, s store.SwapResult) (*store.Change, error) {
		want = s
		return change, fail
	})
	if v1 != v2 {
		t.Errorf("Atomic = %v (%v), reference %v (%v)", v1, err1, v2, err2)
	}
	p.same(t, "Atomic", got, want, err1, err2)
}

// batch hands over a change, sometimes while another caller has the right to it or has
// written its record.
func (p *pair) batch(ctx context.Context, t *testing.T) {
	t.Helper()
	c, hold := p.change(), p.rng.IntN(2) == 0
	if p.rng.IntN(2) == 0 {
		p.sameBatch(ctx, t, c, hold)
		return
	}
	isWritten := []store.Change{p.change()}
	var txs *Tx
	_, _ = p.sim.Atomic(ctx, p.id, hold, func(ctx context.Context, tx *Tx, _ store.SwapResult) (*store.Change, error) {
		txs = tx
		_, err := p.ref.Atomic(ctx, p.id, hold, func(ctx context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			got, err1 := p.sim.SwapTx(ctx, txs, isWritten)
			want, err2 := p.ref.SwapTx(ctx, tx, isWritten)
			p.same(t, "SwapTx", got[0], want[0], err1, err2)
			p.sameBatch(ctx, t, c, hold)
			return nil, errHandler
		})
		return nil, err
	})
}

func (p *pair) sameBatch(ctx context.Context, t *testing.T, c store.Change, hold bool) {
	t.Helper()
	got, v1, err1 := p.sim.AtomicBatch(ctx, c, hold, &Batch{})
	want, v2, err2 := p.ref.AtomicBatch(ctx, c, hold, nil)
	if v1 != v2 {
		t.Errorf("AtomicBatch = %v (%v), reference %v (%v)", v1, err1, v2, err2)
	}
	p.same(t, "AtomicBatch", got, want, err1, err2)
}

func (p *pair) same(t *testing.T, call string, got, want store.SwapResult, err1, err2 error) {
	t.Helper()
	if errors.Is(err1, store.ErrSuperseded) != errors.Is(err2, store.ErrSuperseded) || (err1 == nil) != (err2 == nil) {
		t.Errorf("%s fails with %v, reference with %v", call, err1, err2)
	}
	if got.Token != want.Token || got.Busy != want.Busy || (got.Record == nil) != (want.Record == nil) {
		t.Errorf("%s = %+v, reference %+v", call, got, want)
		return
	}
	if got.Record == nil {
		return
	}
	g, w := *got.Record, *want.Record
	g.Age, g.Since, w.Age, w.Since = 0, 0, 0, 0
	if (g.Due <= 0) != (w.Due <= 0) || (g.Expire == 0) != (w.Expire == 0) || g.Tainted != w.Tainted ||
		string(g.Fingerprint) != string(w.Fingerprint) || string(g.Outcome) != string(w.Outcome) {
		t.Errorf("%s reads %+v, reference %+v", call, g, w)
	}
}
