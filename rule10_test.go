package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
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
	t.Run("void", everyCallReturns(struct{}{}))
	t.Run("zero", everyCallReturns(0))
	t.Run("false", everyCallReturns(false))
	t.Run("empty string", everyCallReturns(""))
	t.Run("string of any kind", everyCallReturns("\x00 </script> \u2028 ü"))
	t.Run("nil", everyCallReturns[any](nil))
	t.Run("nil pointer", everyCallReturns[*group](nil))
	t.Run("pointer", everyCallReturns(&group{ID: 1 << 60, Name: "n"}))
	t.Run("nil slice", everyCallReturns[[]string](nil))
	t.Run("empty slice", everyCallReturns([]string{}))
	t.Run("nil map", everyCallReturns[map[string]int](nil))
	t.Run("empty map", everyCallReturns(map[string]int{}))
	t.Run("zero struct", everyCallReturns(group{}))
	t.Run("full struct", everyCallReturns(group{7, "g", []string{"a", ""}, map[string]any{"k": "v"}, &group{}}))
	t.Run("no bytes", everyCallReturns([]byte{}))
	t.Run("bytes", everyCallReturns([]byte{0, 255, '\n'}))
	t.Run("empty raw", everyCallReturns(semel.Raw{}))
	t.Run("raw null", everyCallReturns(semel.Raw("null")))
	t.Run("raw", everyCallReturns(semel.Raw{0, 255, 'j', '\n'}))
	t.Run("raw as any", everyCallReturns[any](semel.Raw("{")))
	t.Run("json", everyCallReturns(json.RawMessage(`{"a":1}`)))
	t.Run("json null", everyCallReturns(json.RawMessage("null")))
	t.Run("negative zero", everyCallReturns(-0.5))
}

// everyCallReturns checks that every caller gets v, by every call, and the handler
// runs once.
func everyCallReturns[T any](v T) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for _, d := range entryPoints() {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testReplay(t, d, v) })
			})
		}
	}
}

func testReplay[T any](t *testing.T, d entryPoint, v T) {
	t.Helper()
	p, mem := solo(t, semel.Options{})
	other := start(t, mem, semel.Options{})
	call := plain("op", d.o).Call(me, "k", "in")
	runs := 0
	ask := func(p *process) (T, bool, error) {
		fn := func(context.Context) (T, error) { runs++; return v, nil }
		fnTx := func(ctx context.Context, _ *memory.Tx) (T, error) { return fn(ctx) }
		switch d.name {
		case "Do":
			return semel.Do(t.Context(), p, call, fn)
		case "InTx":
			return semel.Do(t.Context(), p, call, func(ctx context.Context) (T, error) { return semel.InTx(ctx, p.Engine, fnTx) })
		default:
			return semel.DoTx(t.Context(), p.Engine, call, fnTx)
		}
	}
	for i, p := range []*process{p, p, other} {
		got, replayed, err := ask(p)
		if err != nil || replayed != (i > 0) || !reflect.DeepEqual(got, v) {
			t.Errorf("asker %d got %#v, replayed %v, %v; want %#v", i, got, replayed, err, v)
		}
	}
	check.Equal(t, runs, 1, "the function ran")
}

func TestRule10NilRawIsEmptyRaw(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
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
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, returns("a string")).want(t, "a string", false)
		_, replayed, err := semel.Do(t.Context(), p, call, func(context.Context) (int, error) { return 1, errBoom })
		if !errors.Is(err, semel.ErrResultUnavailable) || !replayed {
			t.Errorf("requested as an int: replayed %v, %v, want ErrResultUnavailable", replayed, err)
		}
		_, replayed, err = semel.Do(t.Context(), p, call, func(context.Context) (semel.Raw, error) { return nil, errBoom })
		if !errors.Is(err, semel.ErrResultUnavailable) || !replayed {
			t.Errorf("requested as raw: replayed %v, %v, want ErrResultUnavailable", replayed, err)
		}
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestRule10FailureIsTheSameForAll: code, message and the bytes of the details.
func TestRule10FailureIsTheSameForAll(t *testing.T) {
	t.Parallel()
	failures := map[string]error{
		"plain":            errBoom,
		"full":             &semel.Failure{Code: "no_member", Message: "user 7 is unknown", Details: json.RawMessage(`{"user": 7, "why":"<&>"}`)},
		"code alone":       &semel.Failure{Code: "c"},
		"empty":            &semel.Failure{},
		"null details":     &semel.Failure{Details: json.RawMessage("null")},
		"broken details":   &semel.Failure{Code: "c", Message: "m", Details: json.RawMessage("{")},
		"of any bytes":     &semel.Failure{Message: "\xff\x00 ü </b>"},
		"larger than kept": &semel.Failure{Code: strings.Repeat("c", 999), Message: strings.Repeat("ü\x01", 9999)},
		"wrapped":          errors.Join(errBoom, &semel.Failure{Code: "c", Message: "m"}),
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			eachEntryPoint(t, func(t *testing.T, d entryPoint) {
				mem := memory.New(memory.Options{MaxOutcome: 4096})
				p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
				call := plain("op", d.o).Call(me, "k", "in")
				var failures []*semel.Failure
				for _, p := range []*process{p, p, other} {
					a := d.ask(t.Context(), p, call, fails(semel.Final(failure)))
					f, ok := errtype.Find[*semel.Failure](a.err)
					if !ok || semel.VerdictOf(a.err) != store.NotCommitted {
						t.Fatalf("got %v, want a failure", a.err)
					}
					failures = append(failures, f)
				}
				if diff := cmp.Diff(failures[0], failures[1]) + cmp.Diff(failures[0], failures[2]); diff != "" {
					t.Errorf("the answers to the first caller and the others differ (-first +other):\n%s", diff)
				}
				wantState(t, mem, call, store.Failed)
			})
		})
	}
}

// TestRule10FailureIsWhatWasReturned where it can be stored as it is.
func TestRule10FailureIsWhatWasReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		want := &semel.Failure{Code: "no_member", Message: "user 7 is unknown", Details: json.RawMessage(`{"user":7}`)}
		a := do(t.Context(), p, op.Call(me, "k", "in"), fails(semel.Final(want)))
		got, _ := errtype.Find[*semel.Failure](a.err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
		if got, want := a.err.Error(), "no_member: user 7 is unknown"; got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
		a = do(t.Context(), p, op.Call(me, "other", "in"), fails(semel.Final(errBoom)))
		got, _ = errtype.Find[*semel.Failure](a.err)
		if diff := cmp.Diff(&semel.Failure{Message: "boom"}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	})
}
