package semel_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

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
		if diff := cmp.Diff(append([]byte{5, 0}, sum[:16]...), r.Fingerprint); diff != "" {
			t.Errorf("fingerprint (-want +got):\n%s", diff)
		}
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
	})
}
