package semel_test

import (
	"crypto/sha256"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
)

// visit says itself what makes it the same request.
type visit struct{ place, trace string }

func (v visit) AppendFingerprint(b []byte) ([]byte, error) {
	if v.place == "" {
		return b, errBoom
	}
	return append(b, v.place...), nil
}

// An input may say itself what makes it the same request, as a whole or as what one
// of the Fingerprints chooses.
func TestInputChoosesItsFingerprint(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]*semel.Operation[visit]{
		"the input":     semel.Define("visit", semel.OperationOptions[visit]{}),
		"of the fields": semel.Define("visit", semel.OperationOptions[visit]{Fingerprints: []func(visit) any{func(v visit) any { return v }}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, mem := solo(t, semel.Options{})
			ask := func(v visit) answer { return do(t.Context(), p, op.Call(me, "k", v), returns("seen")) }
			ask(visit{"Oslo", "trace 1"}).want(t, "seen", false)
			ask(visit{"Oslo", "trace 2"}).want(t, "seen", true)
			ask(visit{"Rome", "trace 1"}).wantErr(t, semel.ErrMismatch)
			ask(visit{}).wantErr(t, semel.ErrInvalid)
			sum := sha256.Sum256([]byte("Oslo"))
			got := record(t, mem, op.Call(me, "k", visit{"Oslo", ""})).Fingerprint
			if diff := cmp.Diff(append([]byte{4, got[1]}, sum[:16]...), got); diff != "" {
				t.Errorf("stored fingerprint (-want +got):\n%s", diff)
			}
		})
	}
}

// What an input inherits from a type that knows how to write itself is not all that
// it is: every field counts.
func TestFingerprintCoversFieldsBesideAnEmbeddedType(t *testing.T) {
	t.Parallel()
	type fetch struct {
		*url.URL

		Body string
	}
	op := semel.Define("fetch", semel.OperationOptions[fetch]{})
	p, _ := solo(t, semel.Options{})
	at := &url.URL{Host: "example.com"}
	do(t.Context(), p, op.Call(me, "k", fetch{at, "a"}), returns("done")).want(t, "done", false)
	do(t.Context(), p, op.Call(me, "k", fetch{at, "b"}), never(t)).wantErr(t, semel.ErrMismatch)
}

// Nothing of one caller's input or result gets into another's.
func TestConcurrentFingerprints(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	op := plain("op", semel.OperationOptions[string]{})
	var callers sync.WaitGroup
	for n := range 8 {
		callers.Go(func() {
			for size := range 200 {
				v := strings.Repeat(string(rune('a'+n)), size+1)
				call := op.Call(me, v+"k", v)
				do(t.Context(), p, call, returns(v)).want(t, v, false)
				do(t.Context(), p, op.Call(me, v+"k", v), never(t)).want(t, v, true)
			}
		})
	}
	callers.Wait()
}
