package semel_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 10: empty, null, 204 and void are results. A replayed failure is the
// stored failure, the same for the first caller and the last.

type group struct {
	ID      int64          `json:"id"`
	Name    string         `json:"name"`
	Members []string       `json:"members"`
	Extra   map[string]any `json:"extra"`
	Next    *group         `json:"next"`
}

func TestRule10EmptyIsAResult(t *testing.T) {
	t.Run("void", sameForAll(struct{}{}, false))
	t.Run("zero", sameForAll(0, false))
	t.Run("false", sameForAll(false, false))
	t.Run("empty string", sameForAll("", false))
	t.Run("string of any kind", sameForAll("\x00 </script> \u2028 ü", false))
	t.Run("nil", sameForAll[any](nil, false))
	t.Run("nil pointer", sameForAll[*group](nil, false))
	t.Run("pointer", sameForAll(&group{ID: 1 << 60, Name: "n"}, false))
	t.Run("nil slice", sameForAll[[]string](nil, false))
	t.Run("empty slice", sameForAll([]string{}, false))
	t.Run("nil map", sameForAll[map[string]int](nil, false))
	t.Run("empty map", sameForAll(map[string]int{}, false))
	t.Run("zero struct", sameForAll(group{}, false))
	t.Run("full struct", sameForAll(group{7, "g", []string{"a", ""}, map[string]any{"k": "v"}, &group{}}, false))
	t.Run("no bytes", sameForAll([]byte{}, false))
	t.Run("bytes", sameForAll([]byte{0, 255, '\n'}, false))
	t.Run("empty raw", sameForAll(semel.Raw{}, false))
	t.Run("raw null", sameForAll(semel.Raw("null"), false))
	t.Run("raw", sameForAll(semel.Raw{0, 255, 'j', '\n'}, false))
	t.Run("raw as any", sameForAll[any](semel.Raw("{"), false))
	t.Run("json", sameForAll(json.RawMessage(`{"a":1}`), false))
	t.Run("json null", sameForAll(json.RawMessage("null"), false))
	t.Run("negative zero", sameForAll(-0.5, false))
}

// sameForAll checks that all callers in two processes get the same result, by every entry
// point, and that the function runs once. The result is v, unless storing it alters it,
// which is an alarm.
func sameForAll[T any](v T, altered bool) func(t *testing.T) {
	return func(t *testing.T) {
		points := entryPoints()
		points["DoBatch"] = entryPoint{name: "DoBatch"}
		eachInBubble(t, points, func(t *testing.T, d entryPoint) { testSameForAll(t, d, v, altered) })
	}
}

func testSameForAll[T any](t *testing.T, d entryPoint, v T, altered bool) {
	t.Helper()
	p, other, _ := pair(t, semel.Options{})
	call := plain("op", d.o).Call(me, "k", "in")
	runs := 0
	fn := func(context.Context) (T, error) { runs++; return v, nil }
	want, wantErr := v, error(nil)
	for i, p := range []*process{p, p, other} {
		got, replayed, err := through(t.Context(), p, d, call, fn)
		if i == 0 && altered {
			want, wantErr = got, err
		}
		check.NoDiff(t, cmp.Diff(want, got, cmp.AllowUnexported(partlyEncoded{})), "caller %d", i)
		if unavailable := errors.Is(err, semel.ErrResultUnavailable); err != nil && !unavailable || unavailable != (wantErr != nil) || err == nil && replayed != (i > 0) {
			t.Errorf("caller %d got replayed %v, %v; want the first caller's %v", i, replayed, err, wantErr)
		}
	}
	if d.name != "DoBatch" { // its function has no effects of its own
		check.Equal(t, runs, 1, "the function ran")
	}
	check.Equal(t, p.seen.count(event.Altered) > 0, altered, "the alarm that the result was altered")
}

func TestRule10NilRawIsEmptyRaw(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		for range 2 {
			got, _, err := semel.Do(t.Context(), p, call, func(context.Context) (semel.Raw, error) { return nil, nil })
			if err != nil || len(got) != 0 {
				t.Errorf("got %q, %v, want no bytes", got, err)
			}
		}
	})
}

// TestRule10ResultOfAnotherType: a stored result that cannot be decoded into the
// requested type is unavailable; the operation does not run again.
func TestRule10ResultOfAnotherType(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		do(t.Context(), p, call, returns("a string")).want(t, "a string", false)
		_, replayed, err := semel.Do(t.Context(), p, call, func(context.Context) (int, error) { return 1, errBoom })
		answer{replayed: replayed, err: err}.wantNoResult(t)
		_, replayed, err = semel.Do(t.Context(), p, call, func(context.Context) (semel.Raw, error) { return nil, errBoom })
		answer{replayed: replayed, err: err}.wantNoResult(t)
		wantState(t, p.mem, call, store.Succeeded)
	})
}

// TestRule10FailureIsTheSameForAll: code, message and the bytes of the details, as they were
// returned if they can be stored as they are. It is replayed for every caller but the first.
func TestRule10FailureIsTheSameForAll(t *testing.T) {
	full := &semel.Failure{Code: "no_member", Message: "user 7 is unknown", Details: json.RawMessage(`{"user":7}`)}
	type row struct {
		returned error
		want     *semel.Failure // nil: not as it was returned
	}
	eachPair(t, entryPoints(), map[string]row{
		"plain":            {errBoom, &semel.Failure{Message: "boom"}},
		"full":             {full, full},
		"code alone":       {&semel.Failure{Code: "c"}, &semel.Failure{Code: "c"}},
		"empty":            {&semel.Failure{}, nil},
		"escaped details":  {&semel.Failure{Details: json.RawMessage(`{"user": 7, "why":"<&>"}`)}, nil},
		"null details":     {&semel.Failure{Details: json.RawMessage("null")}, nil},
		"broken details":   {&semel.Failure{Code: "c", Message: "m", Details: json.RawMessage("{")}, nil},
		"of any bytes":     {&semel.Failure{Message: "\xff\x00 ü </b>"}, nil},
		"larger than kept": {&semel.Failure{Code: strings.Repeat("c", 999), Message: strings.Repeat("ü\x01", 9999)}, nil},
		"wrapped":          {errors.Join(errBoom, &semel.Failure{Code: "c", Message: "m"}), nil},
	}, func(t *testing.T, d entryPoint, tt row) {
		mem := memory.New(memory.Options{MaxOutcome: 4096})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		want := tt.want
		for i, p := range []*process{p, p, other} {
			a := d.ask(t.Context(), p, call, fails(semel.Final(tt.returned)))
			got, ok := errtype.Find[*semel.Failure](a.err)
			if !ok || semel.VerdictOf(a.err) != store.NotCommitted {
				t.Fatalf("got %v, want a failure", a.err)
			}
			if want == nil {
				want = got
			}
			check.NoDiff(t, cmp.Diff(want, got), "the failure that caller %d got", i)
			check.Equal(t, semel.Replayed(a.err), i > 0, "Replayed(%v)", a.err)
		}
		wantState(t, mem, call, store.Failed)
	})
}

func TestErrorsThatSayNothing(t *testing.T) {
	t.Parallel()
	if semel.VerdictOf(nil) != store.Committed || semel.VerdictOf(errBoom) != store.Unknown || semel.RetryAfter(nil) != 0 ||
		semel.Replayed(nil) || semel.Replayed(errBoom) || semel.Replayed(&semel.Failure{}) {
		t.Error("VerdictOf, RetryAfter or Replayed of no error and of a stranger's")
	}
}

func TestZeroCallNamesNothing(t *testing.T) {
	t.Parallel()
	var none semel.Call
	if none.Operation() != "" || none.Key() != "" || none.Scope() != (semel.Scope{}) || none.ID() != (store.ID{}) {
		t.Error("the zero Call names something")
	}
}

// TestStoredFormatsStayReadable pins the stored forms of results, failures,
// tombstones and fingerprints. Records outlive the program that wrote them.
func TestStoredFormatsStayReadable(t *testing.T) {
	failure := semel.Final(&semel.Failure{Code: "c", Message: "m", Details: json.RawMessage(`[1]`)})
	type row struct {
		fn   func(context.Context) (any, error)
		want string
	}
	tests := map[string]row{
		"json":      {func(context.Context) (any, error) { return map[string]int{"a": 1}, nil }, `j{"a":1}`},
		"void":      {func(context.Context) (any, error) { return struct{}{}, nil }, `j{}`},
		"null":      {func(context.Context) (any, error) { return nil, nil }, `jnull`},
		"raw":       {func(context.Context) (any, error) { return semel.Raw("\x00\xff"), nil }, "r\x00\xff"},
		"tombstone": {func(context.Context) (any, error) { return adapter.Tombstone("streamed"), nil }, "tstreamed"},
		"failure":   {func(context.Context) (any, error) { return nil, failure }, `f{"code":"c","message":"m","details":[1]}`},
		"error":     {func(context.Context) (any, error) { return nil, semel.Final(errBoom) }, `f{"message":"boom"}`},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		p, mem := solo(t, semel.Options{})
		_, _, _ = semel.Do(t.Context(), p, theCall, tt.fn)
		r := record(t, mem, theCall)
		check.Equal(t, string(r.Outcome), tt.want, "stored")
		sum := sha256.Sum256([]byte(`"in"`))
		check.NoDiff(t, cmp.Diff(append([]byte{5, 0}, sum[:16]...), r.Fingerprint), "fingerprint")
		if r.Operation != "op" || r.Scope != "2:me" || r.Key != "k" || r.ID != store.NewID("op", "2:me", "k") {
			t.Errorf("stored as %q of %q in %q, under %v", r.Key, r.Operation, r.Scope, r.ID)
		}
	})
}

// TestOutcomesOfOtherPrograms: an unreadable outcome is reported as unavailable or
// as a failure that names the reason. It never leads to another run.
func TestOutcomesOfOtherPrograms(t *testing.T) {
	type row struct {
		state   store.State
		outcome string
		want    string // of the error
	}
	tests := map[string]row{
		"no outcome":              {store.Succeeded, "", "semel: succeeded, result unavailable: the record has no outcome"},
		"of a kind to come":       {store.Succeeded, "z1", "semel: succeeded, result unavailable: stored as kind 'z', requested as *string"},
		"damaged":                 {store.Succeeded, "j{", "semel: succeeded, result unavailable: unmarshal result: unexpected end of JSON input"},
		"failure of a kind":       {store.Failed, "z", "failed; the record says no more"},
		"failure without outcome": {store.Failed, "", "failed; the record says no more"},
		"damaged failure":         {store.Failed, "f{", "failed; the stored failure cannot be read"},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		mem := memory.New(memory.Options{})
		createExisting(t, mem, theCall, inDoubt)
		was := record(t, mem, theCall)
		to := was
		to.State, to.Outcome = tt.state, []byte(tt.outcome)
		check.Must(mem.Swap(t.Context(), []store.Change{{If: was.Token, To: to}}))(t)
		p := start(t, mem, semel.Options{})
		for _, a := range []answer{do(t.Context(), p, theCall, never(t)), doTx(t.Context(), p, theCall, neverTx(t))} {
			if a.err == nil || a.err.Error() != tt.want {
				t.Errorf("got %v, want %q", a.err, tt.want)
			}
		}
		out := adapter.Outcome{Record: record(t, mem, theCall)}
		if failure := out.Failure(); (failure != nil) != (tt.state == store.Failed) || failure != nil && failure.Message != tt.want {
			t.Errorf("the outcome has the failure %v, want %q of a Failed record alone", failure, tt.want)
		}
	})
}
