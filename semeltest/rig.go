package semeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel/store"
)

const (
	long    = time.Hour       // does not come during a check
	slack   = 5 * time.Minute // what a slow machine may take for one
	patient = 2 * time.Minute // when a check that gets no answer gives up
)

// rig is a fresh store, and the words in which checks speak to it.
type rig struct {
	*testing.T

	ctx     context.Context // of one check, which lives as long as the rig
	store   store.Store
	caps    store.Capabilities
	advance func(time.Duration) // nil: the clock cannot be moved
	leases  time.Duration       // of engines, when it cannot
	made    int                 // identities drawn
}

func newRig(t *testing.T, s store.Store, advance func(time.Duration)) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	caps, err := s.Capabilities(ctx)
	if err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	return &rig{T: t, ctx: ctx, store: s, caps: caps, advance: advance, leases: time.Second}
}

// fresh returns the identity of a record that no one has used.
func (r *rig) fresh() store.Record {
	r.made++
	return identity("semeltest", "scope", fmt.Sprintf("key-%d", r.made))
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

// move takes what from says stands to another token, and keeps its fields.
func move(from store.Record, to store.Token) store.Change {
	c := store.Change{If: from.Token, To: from}
	c.To.Token, c.To.Input, c.To.Outcome, c.To.Due, c.To.Expire = to, nil, nil, 0, 0
	return c
}

// stand lets a fresh record stand in the state, not due for long.
func (r *rig) stand(state store.State) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Due, rec.Input, rec.Outcome = long, []byte("input"), []byte("outcome")
	c := create(rec, state)
	r.mustForce(c)
	return c.To
}

// swap asks for the changes, and again for those that are Busy.
func (r *rig) swap(changes ...store.Change) []store.SwapResult {
	r.Helper()
	answers, err := swapAll(r.ctx, r.store, changes)
	if err != nil {
		r.Fatalf("Swap: %v", err)
	}
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

// pause gives others a moment before a question is asked again.
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

// mustForce asks for c and requires that it is in force.
func (r *rig) mustForce(c store.Change) {
	r.Helper()
	answer := r.swap(c)[0]
	if !answer.Applied(c) {
		r.Fatalf("%s = %s, want in force", show(c), showAnswer(answer))
	}
	if answer.Record != nil {
		r.Errorf("%s is in force and shows a Record, want nil", show(c))
	}
}

// mustRefuse asks for c and requires the answer that want stands.
func (r *rig) mustRefuse(c store.Change, want store.Token) {
	r.Helper()
	r.refused(c, r.swap(c)[0], want)
}

func (r *rig) refused(c store.Change, answer store.SwapResult, want store.Token) {
	r.Helper()
	switch {
	case answer.Err != nil || answer.Busy || answer.Token != want:
		r.Fatalf("%s = %s, want %s", show(c), showAnswer(answer), showToken(want))
	case want == store.Token{} && answer.Record != nil:
		r.Errorf("%s: nothing stands, and the answer shows a Record", show(c))
	case want != store.Token{} && answer.Record == nil:
		r.Errorf("%s: something else stands, and the answer does not show it", show(c))
	case answer.Record != nil && (answer.Record.Token != want || answer.Record.ID != c.To.ID):
		r.Errorf("%s: the answer shows %s, want %s", show(c), showToken(answer.Record.Token), showToken(want))
	}
}

// read returns what Get says of id, nil if nothing stands.
func (r *rig) read(id store.ID) *store.Record {
	r.Helper()
	answers, err := r.store.Get(r.ctx, []store.ID{id})
	if err != nil || len(answers) != 1 {
		r.Fatalf("Get = %d answers, %v, want 1", len(answers), err)
	}
	return answers[0].Record
}

// mustRead returns the record that stands.
func (r *rig) mustRead(id store.ID) store.Record {
	r.Helper()
	rec := r.read(id)
	if rec == nil {
		r.Fatalf("Get(%s): nothing stands", id)
	}
	return *rec
}

// mustStand requires that the fields of want stand; times are not compared.
func (r *rig) mustStand(want store.Record) {
	r.Helper()
	if diff := diffRecords(r.mustRead(want.ID), want); diff != "" {
		r.Errorf("what stands differs (-want +got):\n%s", diff)
	}
}

// mustBeAbsent requires that nothing stands.
func (r *rig) mustBeAbsent(id store.ID) {
	r.Helper()
	if rec := r.read(id); rec != nil {
		r.Errorf("Get(%s): %s stands, want nothing", id, showToken(rec.Token))
	}
}

// diffRecords says where two records differ, times apart. It asks cmp only what
// to say, because it is called thousands of times.
func diffRecords(got, want store.Record) string {
	if reflect.DeepEqual(timeless(got), timeless(want)) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(store.Record{}, "Due", "Expire", "Age", "Since"))
}

// timeless returns r without its times, and with nil for what is empty.
func timeless(r store.Record) store.Record {
	r.Due, r.Expire, r.Age, r.Since = 0, 0, 0, 0
	for _, b := range []*[]byte{&r.Fingerprint, &r.Input, &r.Outcome} {
		if len(*b) == 0 {
			*b = nil
		}
	}
	return r
}
