package failures_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// wantDoneButGone requires that what happened is never run again although its
// answer cannot be given twice: repeats are told just that.
func wantDoneButGone[Tx any](t *testing.T, w *world[Tx], base string, first func(a answer)) {
	t.Helper()
	a, err := send(t.Context(), http.DefaultClient, base, "ann", "k")
	if err != nil {
		t.Fatalf("the first try: %v", err)
	}
	first(a)
	for range 2 {
		a := ask(t, base, "ann", "k")
		if a.status != http.StatusConflict || !strings.Contains(a.body, "result_unavailable") {
			t.Errorf("the repeat got %d %.80q", a.status, a.body)
		}
	}
	w.wantEffects(t, "ann/k", 1)
}

// A response larger than is kept reaches its first client whole.
func tooLargeToKeep[Tx any](t *testing.T, w *world[Tx], by way) {
	body := bytes.Repeat([]byte("large "), 2<<20/6)
	base := w.serve(t, by, func(rw http.ResponseWriter, _ *http.Request, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		_, err := rw.Write(body)
		return err
	})
	wantDoneButGone(t, w, base, func(a answer) {
		if a.status != http.StatusOK || a.body != string(body) {
			t.Errorf("the first client got %d and %d bytes", a.status, len(a.body))
		}
	})
}

// A response that is flushed is either held back until its outcome stands, or
// can never be given again; its effect happens once.
func flushes[Tx any](t *testing.T, w *world[Tx], by way) {
	base := w.serve(t, by, func(rw http.ResponseWriter, _ *http.Request, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		for i := range 3 {
			_, _ = fmt.Fprintf(rw, "part %d ", i)
			_ = http.NewResponseController(rw).Flush() // may be refused
		}
		return nil
	})
	first := ask(t, base, "ann", "k")
	if first.status != http.StatusOK || first.body != "part 0 part 1 part 2 " {
		t.Errorf("the first client got %d %q", first.status, first.body)
	}
	if a := ask(t, base, "ann", "k"); a.status == http.StatusConflict {
		if !strings.Contains(a.body, "result_unavailable") {
			t.Errorf("the repeat got %d %q", a.status, a.body)
		}
	} else {
		wantReplay(t, a, first)
	}
	w.wantEffects(t, "ann/k", 1)
}

// A connection cannot be taken over before the outcome stands.
func hijacks[Tx any](t *testing.T, w *world[Tx], by way) {
	base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return once(rw, r, effect)
		}
		defer func() { _ = conn.Close() }()
		if err := effect(); err != nil {
			return err
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nours")
		return buf.Flush()
	})
	first, err := send(t.Context(), http.DefaultClient, base, "ann", "k")
	if err != nil {
		t.Fatalf("the first try: %v", err)
	}
	if a := settled(t, base); a.status == http.StatusConflict {
		if !strings.Contains(a.body, "result_unavailable") {
			t.Errorf("the repeat got %d %q", a.status, a.body)
		}
	} else {
		wantReplay(t, a, first)
	}
	w.wantEffects(t, "ann/k", 1)
}

// A value that cannot be written down is a success all the same.
func unmarshalable[Tx any](t *testing.T, w *world[Tx], by way) {
	o := semel.OperationOptions[string]{}
	if by == leased {
		o.Policy, o.Lease = semel.Atomic(), w.Lease
	}
	call := semel.Define(w.op("unmarshalable"), o).Call(semel.ScopeOf("ann"), "k", "in")
	run := func() (func(), bool, error) {
		return semel.DoTx(t.Context(), w.engine, call, func(ctx context.Context, tx Tx) (func(), error) {
			return func() {}, w.effect(ctx, tx, "ann/k")
		})
	}
	if v, replayed, err := run(); v == nil || replayed || err != nil {
		t.Errorf("the first call = %v, %v, want its own value", replayed, err)
	}
	for range 2 {
		if _, _, err := run(); !errors.Is(err, semel.ErrResultUnavailable) {
			t.Errorf("the repeat: %v, want ErrResultUnavailable", err)
		}
	}
	w.wantEffects(t, "ann/k", 1)
}

// A handler that commits and then answers 500, or panics, has committed: repeats
// get what it had written by then.
func failsAfterTheCommit[Tx any](t *testing.T, w *world[Tx], by way) {
	if by == inline {
		t.Skip("inline the answer is there before the commit")
	}
	for name, how := range map[string]func(http.ResponseWriter){
		"answers 500": func(rw http.ResponseWriter) { http.Error(rw, "late", http.StatusInternalServerError) },
		"panics":      func(http.ResponseWriter) { panic("late") },
	} {
		key := strings.Fields(name)[0]
		inner := w.handler(w.engine, by, once)
		base := serve(t, w.protect(t, w.engine, by, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(rw, r)
			how(rw)
		})))
		_, _ = send(t.Context(), http.DefaultClient, base, "ann", key) // a panic breaks the connection off
		if a := ask(t, base, "ann", key); a.status != http.StatusCreated || a.body != "made" || !a.replayed {
			t.Errorf("a handler that %s: the repeat got %d %q", name, a.status, a.body)
		}
		w.wantEffects(t, "ann/"+key, 1)
	}
}

// What says "not now" is never frozen: the next try runs.
func refusalsPass[Tx any](t *testing.T, w *world[Tx], by way) {
	for _, status := range []int{401, 403, 408, 413, 415, 423, 425, 429, 500, 502, 503, 504} {
		key := fmt.Sprint("k", status)
		first := true
		base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
			if !first {
				return once(rw, r, effect)
			}
			first = false
			if by == leased { // what is written in InTx is the outcome, so it must fail to be none
				return errors.Join(effect(), &semelhttp.StatusError{Status: status})
			}
			err := effect()
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, "not now")
			return err
		})
		if a := ask(t, base, "ann", key); a.status < http.StatusBadRequest {
			t.Errorf("%d was told as %d %q", status, a.status, a.body)
		}
		w.wantEffects(t, "ann/"+key, 0)
		if a := ask(t, base, "ann", key); a.status != http.StatusCreated || a.replayed {
			t.Errorf("after %d the retry got %d %q, replayed %v", status, a.status, a.body, a.replayed)
		}
		w.wantEffects(t, "ann/"+key, 1)
	}
}
