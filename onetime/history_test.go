package onetime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// silent is an observer of many expected alarms.
type silent struct{}

func (silent) Observe(context.Context, event.Event) {}

// TestHistory: many submits of each token at the same time, over a store with faults, and with functions
// that fail before the effect, after it, and by a panic. A token has at most one effect, and exactly one
// after a success. In a transaction the last submit succeeds.
func TestHistory(t *testing.T) {
	t.Parallel()
	for name, inTx := range map[string]bool{"in a transaction": true, "anywhere": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &tokenHistory{t: t, inTx: inTx, books: ledger.MemoryOf(memory.New(memory.Options{}))}
			s := storetest.NewFaultyTx(h.books.Store, func(storetest.Call) storetest.Fault {
				if h.healthy.Load() || rand.IntN(12) > 0 {
					return storetest.Fault{}
				}
				return []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()}[rand.IntN(3)]
			})
			h.engine = check.Must(semel.New(s, semel.Options{Survive: store.NoFailure, Observer: silent{}, Lease: time.Second}))(t)
			t.Cleanup(func() { check.NoError(t, h.engine.Close(context.Background())) })
			h.purpose = onetime.Define[string]("order", onetime.Options{Wait: 50 * time.Millisecond})
			tokens := make([]usedToken, 60)
			var all sync.WaitGroup
			for i := range tokens {
				all.Go(func() { h.use(&tokens[i], strconv.Itoa(i)) })
			}
			all.Wait()
			h.healthy.Store(true)
			for i := range tokens {
				all.Go(func() { h.check(&tokens[i]) })
			}
			all.Wait()
		})
	}
}

type tokenHistory struct {
	t       *testing.T
	inTx    bool
	healthy atomic.Bool
	books   storetest.Subject[*memory.Tx]
	engine  *semel.Engine[*memory.Tx]
	purpose *onetime.Purpose[string]
}

type usedToken struct {
	token, payload string
	succeeded      atomic.Bool
	apart          atomic.Int64 // effects outside of the store
}

// use issues a token and submits it many times.
func (h *tokenHistory) use(u *usedToken, payload string) {
	u.payload = payload
	for err := error(semel.ErrUnavailable); err != nil; { // the store refuses some
		u.token, err = h.purpose.Issue(h.t.Context(), h.engine, semel.ScopeOf("ann"), time.Hour, payload)
	}
	var submits sync.WaitGroup
	for range 6 {
		submits.Go(func() {
			for range 4 {
				if h.submit(u, rand.IntN(6)) == nil {
					u.succeeded.Store(true)
				}
			}
		})
	}
	submits.Wait()
}

var errFate = errors.New("the function fails")

// submit uses the token once. The function fails before the effect with fate 1, after it with fate 2, and
// panics with fate 3.
func (h *tokenHistory) submit(u *usedToken, fate int) (err error) {
	defer func() {
		if recover() != nil {
			err = errFate
		}
	}()
	effect := func(ctx context.Context, tx *memory.Tx, payload string) (string, error) {
		if fate == 1 {
			return "", semel.NotCommitted(errFate)
		}
		if tx == nil {
			u.apart.Add(1)
		} else if err := h.books.Effect(ctx, tx, payload); err != nil {
			return "", err
		}
		switch fate {
		case 2:
			return "", errFate
		case 3:
			panic(errFate)
		default:
			return payload, nil
		}
	}
	var v string
	if h.inTx {
		v, _, err = onetime.ConsumeTx(h.t.Context(), h.purpose, h.engine, semel.ScopeOf("ann"), u.token, effect)
	} else {
		v, _, err = onetime.Consume(h.t.Context(), h.purpose, h.engine, semel.ScopeOf("ann"), u.token,
			func(ctx context.Context, payload string) (string, error) { return effect(ctx, nil, payload) })
	}
	if err == nil && v != u.payload {
		h.t.Errorf("the result of %s is %q", u.payload, v)
	}
	return err
}

// check submits the token once more, over a store without faults.
func (h *tokenHistory) check(u *usedToken) {
	var err error
	realtest.Poll(h.t, "the end of leases", func() bool {
		err = h.submit(u, 0)
		return !errors.Is(err, semel.ErrInProgress)
	})
	n := h.books.Effects(u.payload) + int(u.apart.Load())
	switch {
	case err == nil && n != 1, n > 1, u.succeeded.Load() && (err != nil || n != 1), h.inTx && err != nil, err != nil && !errors.Is(err, semel.ErrInDoubt):
		h.t.Errorf("token %s: %v with %d effects, after a success: %v", u.payload, err, n, u.succeeded.Load())
	}
}
