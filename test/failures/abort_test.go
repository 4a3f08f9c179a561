package failures_test

import (
	"net/http"
	"runtime"
	"testing"
	"time"
)

// dies is a handler whose first run has its effect and then ends as told.
func dies(how func()) script {
	first := true
	return func(w http.ResponseWriter, r *http.Request, effect func() error) error {
		if !first {
			return once(w, r, effect)
		}
		first = false
		if err := effect(); err != nil {
			return err
		}
		how()
		return nil
	}
}

// wantNothingThenOne requires that the first try had no effect and was told no
// success, and that the same key then has one.
func wantNothingThenOne[Tx any](t *testing.T, w *world[Tx], base string) {
	t.Helper()
	if a, err := send(t.Context(), http.DefaultClient, base, "ann", "k"); err == nil && a.status < http.StatusInternalServerError {
		t.Errorf("the first try was told %d %q", a.status, a.body)
	}
	w.wantEffects(t, "ann/k", 0)
	a := settled(t, base)
	if a.status != http.StatusCreated || a.replayed {
		t.Errorf("the retry got %d %q, replayed %v, want a first run", a.status, a.body, a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
	wantReplay(t, ask(t, base, "ann", "k"), a)
}

// A panic after the effect is no success: the effect is rolled back with it.
func panics[Tx any](t *testing.T, w *world[Tx], by way) {
	wantNothingThenOne(t, w, w.serve(t, by, dies(func() { panic("broken") })))
}

func abortsHandler[Tx any](t *testing.T, w *world[Tx], by way) {
	wantNothingThenOne(t, w, w.serve(t, by, dies(func() { panic(http.ErrAbortHandler) })))
}

// Goexit runs deferred calls and looks like a return to those that only recover.
func exitsGoroutine[Tx any](t *testing.T, w *world[Tx], by way) {
	// A server's goroutine that ends so never closes its connection: each
	// request has a client of its own, and the first is not waited for.
	reached := make(chan struct{})
	base := w.serve(t, by, dies(func() { defer close(reached); runtime.Goexit() }))
	go func() {
		r, err := request(t.Context(), base, "ann", "k")
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := new(http.Client).Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-reached
	a := settled(t, base)
	if a.status != http.StatusCreated || a.replayed {
		t.Errorf("the retry got %d %q, replayed %v, want a first run", a.status, a.body, a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
}

// timeout is http.TimeoutHandler, which answers 503 and lets the handler go on.
func timeout(h http.Handler) http.Handler {
	return http.TimeoutHandler(h, 50*time.Millisecond, "too slow")
}

// A TimeoutHandler within the protection answers for a handler that is still at
// work: nothing of it may be committed under that answer, or afterwards.
func timeoutWithin[Tx any](t *testing.T, w *world[Tx], by way) {
	if by == leased {
		t.Skip("behind Middleware the handler's own InTx decides; see TimeoutOutside")
	}
	tried := make(chan error, 1)
	first := true
	base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		if !first {
			return once(rw, r, effect)
		}
		first = false
		<-r.Context().Done()
		err := effect()
		for err == nil { // the transaction ends a moment after the answer
			runtime.Gosched()
			err = effect()
		}
		tried <- err
		return err
	}, timeout)
	a := ask(t, base, "ann", "k")
	if a.status != http.StatusServiceUnavailable {
		t.Errorf("the first try was told %d %q", a.status, a.body)
	}
	if err := <-tried; err == nil {
		t.Error("the handler that was given up could still write into its transaction")
	}
	w.wantEffects(t, "ann/k", 0)
	if a := settled(t, base); a.status != http.StatusCreated || a.replayed {
		t.Errorf("the retry got %d %q, replayed %v, want a first run", a.status, a.body, a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
}

// A TimeoutHandler around the protection is a client that hangs up.
func timeoutOutside[Tx any](t *testing.T, w *world[Tx], by way) {
	release := make(chan struct{})
	first := true
	h := w.handler(w.engine, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		if first {
			first = false
			<-release
		}
		return once(rw, r, effect)
	})
	base := serve(t, timeout(w.protect(t, w.engine, by, h)))
	a := ask(t, base, "ann", "k")
	if a.status != http.StatusServiceUnavailable {
		t.Errorf("the slow try was told %d %q", a.status, a.body)
	}
	close(release)
	for a.status == http.StatusServiceUnavailable || a.status == http.StatusConflict {
		a = ask(t, base, "ann", "k")
	}
	if a.status != http.StatusCreated || !a.replayed {
		t.Errorf("the retry got %d %q, replayed %v, want the handler's answer", a.status, a.body, a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
}

// A handler whose own statement was refused, and who went on as if nothing were,
// is told what the database says: either all of it is there, or none.
func swallowsAnError[Tx any](t *testing.T, w *world[Tx], by way) {
	if w.Bad == nil {
		t.Skip("this store refuses no statement")
	}
	first := true
	base := serve(t, w.protect(t, w.engine, by, w.swallowing(by, &first)))
	a := ask(t, base, "ann", "k")
	n := w.effects("ann/k")
	switch told := a.status == http.StatusCreated; {
	case told != (n == 1), n > 1:
		t.Errorf("told %d %q with %d effects", a.status, a.body, n)
	case told == w.Dooms:
		t.Errorf("told %d; a refused statement dooms its transaction: %v", a.status, w.Dooms)
	}
	if a := settled(t, base); a.status != http.StatusCreated {
		t.Errorf("the retry got %d %q", a.status, a.body)
	}
	w.wantEffects(t, "ann/k", 1)
}
