package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
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
		t.Parallel()
		for _, d := range append(entryPoints(), entryPoint{name: "DoBatch"}) {
			t.Run(d.name, func(t *testing.T) {
				bubble(t, func(t *testing.T) { testSameForAll(t, d, v, altered) })
			})
		}
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
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(partlyEncoded{})); diff != "" {
			t.Errorf("caller %d (-want +got):\n%s", i, diff)
		}
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
		if !errors.Is(err, semel.ErrResultUnavailable) || !replayed {
			t.Errorf("requested as an int: replayed %v, %v, want ErrResultUnavailable", replayed, err)
		}
		_, replayed, err = semel.Do(t.Context(), p, call, func(context.Context) (semel.Raw, error) { return nil, errBoom })
		if !errors.Is(err, semel.ErrResultUnavailable) || !replayed {
			t.Errorf("requested as raw: replayed %v, %v, want ErrResultUnavailable", replayed, err)
		}
		wantState(t, p.mem, call, store.Succeeded)
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
