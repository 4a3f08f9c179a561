package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

const (
	farAhead     = time.Hour       // no check lasts this long
	clockSlack   = 5 * time.Minute // how late a slow machine may be
	checkTimeout = 2 * time.Minute // a check without an answer fails after this time
)

// harness has a fresh store and the helpers that checks share.
type harness struct {
	*testing.T

	ctx        context.Context // ends with the check
	store      store.Store
	caps       store.Capabilities
	advance    func(time.Duration) // nil: the clock cannot be moved
	shortLease time.Duration       // the lease of engines if the clock cannot be moved
	keysMade   int                 // number of keys that fresh has returned
	callers    func(n int)         // StoreSubject.callers, or a function without an effect
	lose       func() func() bool  // StoreSubject.Lose
	isolate    func() func()       // StoreSubject.Isolate
}

func newHarness(t *testing.T, s StoreSubject) *harness {
	t.Helper()
	if s.Store == nil {
		t.Fatal("StoreSubject.Store is nil")
	}
	ctx, cancel := context.WithTimeout(t.Context(), checkTimeout)
	t.Cleanup(cancel)
	caps, err := s.Store.Capabilities(ctx)
	check.Require(t, err, "Capabilities")
	r := &harness{
		T: t, ctx: ctx, store: s.Store, caps: caps, advance: s.Advance, shortLease: time.Second, lose: s.Lose, isolate: s.Isolate,
		callers: func(int) {},
	}
	if s.callers != nil {
		r.callers = s.callers
	}
	return r
}

// fresh returns the identity of an absent record.
func (r *harness) fresh() store.Record {
	r.keysMade++
	return identity("storetest", "scope", fmt.Sprintf("key-%d", r.keysMade))
}

func identity(operation, scope, key string) store.Record {
	return store.Record{
		ID:        store.NewID(operation, scope, key),
		Operation: operation, Scope: scope, Key: key,
		Fingerprint: []byte("fingerprint of " + key),
	}
}

// token returns a token with a new owner.
func token(state store.State, attempt uint32) store.Token {
	return store.Token{State: state, Attempt: attempt, Owner: rand.Uint64()}
}

// create creates rec in the state, attempt 1, by a new owner.
func create(rec store.Record, state store.State) store.Change {
	rec.Token = token(state, 1)
	return store.Change{To: rec}
}

// move changes from to the token to and keeps its fields.
func move(from store.Record, to store.Token) store.Change {
	c := store.Change{If: from.Token, To: from}
	c.To.Token, c.To.Input, c.To.Outcome, c.To.Due, c.To.Expire = to, nil, nil, 0, 0
	return c
}

// mustCreateIn creates a record in the state, due far ahead.
func (r *harness) mustCreateIn(state store.State) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Due, rec.Input, rec.Outcome = farAhead, []byte("input"), []byte("outcome")
	c := create(rec, state)
	r.mustApply(c)
	return c.To
}

// swap makes the changes and repeats those that are Busy.
func (r *harness) swap(changes ...store.Change) []store.SwapResult {
	r.Helper()
	answers, err := swapAll(r.ctx, r.store, changes)
	check.Require(r, err, "Swap")
	return answers
}

func swapAll(ctx context.Context, s store.Store, changes []store.Change) ([]store.SwapResult, error) {
	answers, err := s.Swap(ctx, changes)
	if err != nil {
		return nil, err
	}
	if len(answers) != len(changes) {
		return nil, fmt.Errorf("%d answers to %d changes", len(answers), len(changes))
	}
	for i, c := range changes {
		for answers[i].Busy {
			if err := pause(ctx); err != nil {
				return nil, fmt.Errorf("busy for ever: %w", err)
			}
			alone, err := s.Swap(ctx, []store.Change{c})
			if err != nil {
				return nil, err
			}
			answers[i] = alone[0]
		}
	}
	return answers, nil
}

// pause lets other goroutines run before a retry.
func pause(ctx context.Context) error { return pauseFor(ctx, time.Millisecond) }

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mustApply makes c and requires that it is applied.
func (r *harness) mustApply(c store.Change) {
	r.Helper()
	answer := r.swap(c)[0]
	if !answer.Applied(c) {
		r.Fatalf("%s = %s, want applied", show(c), showAnswer(answer))
	}
	if answer.Record != nil {
		r.Errorf("%s is applied and has a Record, want nil", show(c))
	}
}

// mustReject makes c and requires that it is superseded by the token want.
func (r *harness) mustReject(c store.Change, want store.Token) {
	r.Helper()
	r.checkRejected(c, r.swap(c)[0], want)
}

func (r *harness) checkRejected(c store.Change, answer store.SwapResult, want store.Token) {
	r.Helper()
	switch {
	case answer.Err != nil || answer.Busy || answer.Token != want:
		r.Fatalf("%s = %s, want %s", show(c), showAnswer(answer), showToken(want))
	case want == store.Token{} && answer.Record != nil:
		r.Errorf("%s: the record is absent, and the answer has a Record", show(c))
	case want != store.Token{} && answer.Record == nil:
		r.Errorf("%s: the change is superseded, and the answer has no Record", show(c))
	case answer.Record != nil && (answer.Record.Token != want || answer.Record.ID != c.To.ID):
		r.Errorf("%s: the answer shows %s, want %s", show(c), showToken(answer.Record.Token), showToken(want))
	}
}

// read returns the current record, nil if there is none.
func (r *harness) read(id store.ID) *store.Record {
	r.Helper()
	answers, err := r.store.Get(r.ctx, []store.ID{id})
	if err != nil || len(answers) != 1 {
		r.Fatalf("Get = %d answers, %v, want 1", len(answers), err)
	}
	return answers[0].Record
}

// mustRead returns the current record.
func (r *harness) mustRead(id store.ID) store.Record {
	r.Helper()
	rec := r.read(id)
	if rec == nil {
		r.Fatalf("Get(%s): the record is absent", id)
	}
	return *rec
}

// mustHoldRecord compares the current record with want, without times.
func (r *harness) mustHoldRecord(want store.Record) {
	r.Helper()
	if diff := diffRecords(r.mustRead(want.ID), want); diff != "" {
		r.Errorf("the current record differs (-want +got):\n%s", diff)
	}
}

// mustBeAbsent requires that the record is absent.
func (r *harness) mustBeAbsent(id store.ID) {
	r.Helper()
	if rec := r.read(id); rec != nil {
		r.Errorf("Get(%s): %s, want no record", id, showToken(rec.Token))
	}
}

// diffRecords returns the differences of two records, without times. It calls cmp
// only for the text, because it is called thousands of times.
func diffRecords(got, want store.Record) string {
	if reflect.DeepEqual(timeless(got), timeless(want)) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(store.Record{}, "Due", "Expire", "Age", "Since"))
}

// timeless returns r without its times, and with nil for empty fields.
func timeless(r store.Record) store.Record {
	r.Due, r.Expire, r.Age, r.Since = 0, 0, 0, 0
	for _, b := range []*[]byte{&r.Fingerprint, &r.Input, &r.Outcome} {
		if len(*b) == 0 {
			*b = nil
		}
	}
	return r
}
