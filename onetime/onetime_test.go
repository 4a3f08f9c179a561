package onetime_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
)

// manySubmits submits one token 200 times at once, through two engines: there is one
// effect, and each submit has the same result.
func manySubmits(t *testing.T, r *rig, w way) {
	t.Helper()
	const submits = 200
	token := r.issue(t, "ann", w.name+" o1", time.Hour)
	results, errs := make([]string, submits), make([]error, submits)
	var first atomic.Int32
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range submits {
		all.Go(func() {
			<-begin
			var replayed bool
			results[i], replayed, errs[i] = w.use(t.Context(), r.engines[i%2], "ann", token, nothing)
			if !replayed {
				first.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	for i := range submits {
		if errs[i] != nil || results[i] == "" || results[i] != results[0] {
			t.Fatalf("submit %d = %q, %v, want %q", i, results[i], errs[i], results[0])
		}
	}
	check.Equal(t, first.Load(), 1, "submits are no replays")
	check.Equal(t, w.effects(w.name+" o1"), 1, "effects")
}

// otherTokensAreUnknown: a token of another user, of another purpose, changed or
// malformed runs nothing, creates no record, and is answered like any unknown one. Its owner
// can still use it.
func otherTokensAreUnknown(t *testing.T, r *rig, w way) {
	t.Helper()
	e := r.engines[0]
	token := r.issue(t, "ann", w.name+" o2", time.Hour)
	other := onetime.Define[order]("cancel_order", onetime.Options{})
	_, _, err := onetime.Consume(t.Context(), other, e, semel.ScopeOf("ann"), token, func(context.Context, order) (int, error) {
		t.Error("a token of another purpose runs the operation")
		return 0, nil
	})
	errs := []error{err}
	for _, submit := range []struct{ subject, token string }{
		{"bob", token}, {"ann", ""}, {"ann", token[:42]}, {"ann", token + "="}, {"ann", strings.ToUpper(token)}, {"ann", strings.Repeat("x", 1<<20)},
	} {
		_, _, err := w.use(t.Context(), e, submit.subject, submit.token, nothing)
		errs = append(errs, err)
		if _, found, err := admin.Get(t.Context(), e, "place_order", semel.ScopeOf(submit.subject), r.purpose.Call(semel.ScopeOf(submit.subject), submit.token).Key()); found || err != nil {
			t.Errorf("the submit of %.20q by %s has made a record, %v", submit.token, submit.subject, err)
		}
	}
	for i, err := range errs {
		if !errors.Is(err, onetime.ErrUnknown) || err.Error() != onetime.ErrUnknown.Error() {
			t.Errorf("submit %d = %v, want only ErrUnknown", i, err)
		}
	}
	check.Equal(t, w.effects(w.name+" o2"), 0, "effects")
	if v, replayed, err := w.use(t.Context(), e, "ann", token, nothing); v == "" || replayed || err != nil {
		t.Errorf("the owner's submit = %q, %v, %v, want the first result", v, replayed, err)
	}
	if _, _, err := w.use(t.Context(), e, "bob", token, nothing); !errors.Is(err, onetime.ErrUnknown) {
		t.Errorf("the submit of a used token by another user = %v, want ErrUnknown", err)
	}
}

// age returns the age of the record of ann's token.
func (r *rig) age(t *testing.T, token string) time.Duration {
	t.Helper()
	ann := semel.ScopeOf("ann")
	record, found, err := admin.Get(t.Context(), r.engines[0], "place_order", ann, r.purpose.Call(ann, token).Key())
	if !found || err != nil {
		t.Fatalf("Get = %v, %v, want the record of the token", found, err)
	}
	return record.Age
}

// expiry: a token that was not used in time has expired. One that expires while its
// operation runs has its result, which every later submit receives.
func expiry(t *testing.T, r *rig, w way) {
	t.Helper()
	e := r.engines[0]
	old := r.issue(t, "ann", w.name+" old", time.Microsecond)
	realtest.Poll(t, "the end of the token's time", func() bool { return r.age(t, old) >= time.Microsecond })
	for range 2 {
		if _, _, err := w.use(t.Context(), e, "ann", old, nothing); !errors.Is(err, onetime.ErrExpired) || errors.Is(err, onetime.ErrUnknown) {
			t.Errorf("an old token = %v, want ErrExpired", err)
		}
	}
	check.Equal(t, w.effects(w.name+" old"), 0, "effects of an old token")
	var token, v string
	for ttl := time.Second; ; ttl *= 2 { // a busy machine may be too slow for the first
		token = r.issue(t, "ann", w.name+" meanwhile", ttl)
		got, replayed, err := w.use(t.Context(), e, "ann", token, func(context.Context) error {
			realtest.Poll(t, "the end of the token's time", func() bool { return r.age(t, token) >= ttl })
			return nil
		})
		if errors.Is(err, onetime.ErrExpired) {
			continue
		}
		if got == "" || replayed || err != nil {
			t.Fatalf("a token that expires meanwhile = %q, %v, %v, want its result", got, replayed, err)
		}
		v = got
		break
	}
	if again, replayed, err := w.use(t.Context(), r.engines[1], "ann", token, nothing); again != v || !replayed || err != nil {
		t.Errorf("a submit after the token's time = %q, %v, %v, want a replay of %q", again, replayed, err, v)
	}
	check.Equal(t, w.effects(w.name+" meanwhile"), 1, "effects")
}

var errBoom = errors.New("boom")

// tokenStaysOpenAfterARefusal: an error that proves that nothing happened leaves the
// token as it was, with its payload and its time. A final error is every submit's answer.
func tokenStaysOpenAfterARefusal(t *testing.T, r *rig, w way) {
	t.Helper()
	e := r.engines[0]
	token := r.issue(t, "ann", w.name+" o3", time.Hour)
	for range 3 {
		_, _, err := w.use(t.Context(), e, "ann", token, func(context.Context) error { return semel.NotCommitted(errBoom) })
		if !errors.Is(err, errBoom) || semel.VerdictOf(err) != store.NotCommitted {
			t.Fatalf("use = %v, want the operation's error", err)
		}
	}
	v, replayed, err := w.use(t.Context(), e, "ann", token, nothing)
	if v == "" || replayed || err != nil {
		t.Errorf("use after errors = %q, %v, %v, want the first result", v, replayed, err)
	}
	ttl := time.Second
	for {
		token = r.issue(t, "ann", w.name+" o4", ttl)
		_, _, err := w.use(t.Context(), e, "ann", token, func(context.Context) error { return semel.NotCommitted(errBoom) })
		if errors.Is(err, errBoom) {
			break
		}
		ttl *= 2
	}
	realtest.Poll(t, "the end of the token's time", func() bool { return r.age(t, token) >= ttl })
	if _, _, err := w.use(t.Context(), e, "ann", token, nothing); !errors.Is(err, onetime.ErrExpired) {
		t.Errorf("a token whose time was over after an error = %v, want ErrExpired", err)
	}
	token = r.issue(t, "ann", w.name+" o5", time.Hour)
	for i := range 2 {
		_, _, err := w.use(t.Context(), e, "ann", token, func(context.Context) error { return semel.Final(errBoom) })
		if _, failed := errtype.Find[*semel.Failure](err); !failed || semel.Replayed(err) != (i == 1) {
			t.Errorf("submit %d of a token that failed = %v, want the stored failure", i, err)
		}
	}
}

// TestTokenThatAnOperatorAllowsAgain: after an attempt with an unknown effect, a final error
// leaves the token in doubt. An operator who lets it be used again finds its payload and its
// time as they were.
func TestTokenThatAnOperatorAllowsAgain(t *testing.T) {
	t.Parallel()
	e := storeCases()[0].open(t).engines[0]
	p := onetime.Define[order]("doubted", onetime.Options{Policy: semel.AtLeastOnce()})
	ann := semel.ScopeOf("ann")
	token := check.Must(p.Issue(t.Context(), e, ann, time.Hour, order{Name: "o6"}))(t)
	var failure error
	use := func() (string, error) {
		v, _, err := onetime.Consume(t.Context(), p, e, ann, token, func(_ context.Context, o order) (string, error) { return o.Name, failure })
		return v, err
	}
	failure = errBoom
	_, err := use()
	check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the first submit")
	failure = semel.Final(semel.NotCommitted(errBoom))
	_, err = use()
	check.ErrorIs(t, err, errBoom, "the second submit")
	id := p.Call(ann, token).ID()
	resolved, err := admin.Resolve(t.Context(), e, admin.Resolution{ID: id, To: store.Pending, Actor: "ann", Reason: "nothing has happened"})
	check.Require(t, err, "Resolve")
	if progress, _ := admin.ProgressOf(resolved); len(progress.Tries) != 2 || !strings.Contains(progress.Tries[1].Error, "boom") {
		t.Errorf("the progress is %+v, want both errors in it", progress)
	}
	failure = nil
	if v, err := use(); v != "o6" || err != nil {
		t.Errorf("the submit after the resolution = %q, %v, want the payload", v, err)
	}
}

// TestNothingCanBeIssued lists the arguments that Issue refuses, by the name of the field.
func TestNothingCanBeIssued(t *testing.T) {
	t.Parallel()
	r := storeCases()[0].open(t)
	ctx, e, ann := t.Context(), r.engines[0], semel.ScopeOf("ann")
	errs := map[string]error{}
	_, errs["TTL"] = r.purpose.Issue(ctx, e, ann, 0, order{})
	_, errs["Scope"] = r.purpose.Issue(ctx, e, semel.ScopeOf(""), time.Hour, order{})
	_, errs["Name"] = onetime.Define[int]("", onetime.Options{}).Issue(ctx, e, ann, time.Hour, 0)
	_, errs["MaxOpen"] = onetime.Define[int]("p", onetime.Options{MaxOpen: 101}).Issue(ctx, e, ann, time.Hour, 0)
	_, errs["Payload"] = onetime.Define[float64]("p", onetime.Options{}).Issue(ctx, e, ann, time.Hour, math.NaN())
	_, errs["Payload.b"] = onetime.Define[struct{ b int }]("p", onetime.Options{}).Issue(ctx, e, ann, time.Hour, struct{ b int }{1})
	_, err := onetime.Define[string]("p", onetime.Options{}).Issue(ctx, e, ann, time.Hour, strings.Repeat("x", 2<<20))
	for field, err := range errs {
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
			t.Errorf("Issue = %v, want an error about %s", err, field)
		}
	}
	if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != "Payload" {
		t.Errorf("Issue of a large payload = %v, want an error about Payload", err)
	}
	if _, err := r.purpose.Payload(ctx); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("Payload outside of an operation = %v, want ErrInvalid", err)
	}
}

// TestTokensAreSecret: tokens are random and have 256 bits, and neither the record nor the
// call reveals one.
func TestTokensAreSecret(t *testing.T) {
	t.Parallel()
	r := storeCases()[0].open(t)
	seen := map[string]bool{}
	for range 1000 {
		token := r.issue(t, "ann", "o", time.Hour)
		if b, err := base64.RawURLEncoding.DecodeString(token); len(b) != 32 || err != nil || seen[token] {
			t.Fatalf("the token %q has %d bytes, %v, or was issued before", token, len(b), err)
		}
		seen[token] = true
		call := r.purpose.Call(semel.ScopeOf("ann"), token)
		record, _, err := admin.Get(t.Context(), r.engines[0], "place_order", call.Scope(), call.Key())
		if text := fmt.Sprintf("%+v %s %s", record, record.Input, record.Outcome); strings.Contains(text, token) || err != nil {
			t.Fatalf("the record contains the token, %v: %s", err, text)
		}
	}
}
