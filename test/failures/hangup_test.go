package failures_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// once has its effect and answers 201.
func once(w http.ResponseWriter, _ *http.Request, effect func() error) error {
	if err := effect(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "made")
	return nil
}

// hangUp asks for a key and hangs up once reached is closed; then release is
// closed, when the server must have noticed.
func hangUp(t *testing.T, base string, reached <-chan struct{}, release chan<- struct{}) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	done := make(chan error, 1)
	go func() {
		_, err := send(ctx, http.DefaultClient, base, "ann", "k")
		done <- err
	}()
	<-reached
	leave()
	if err := <-done; err == nil {
		t.Error("the client that hung up has an answer")
	}
	close(release)
}

// settled asks until the first request, which may still be at work, has an end.
func settled(t *testing.T, base string) answer {
	t.Helper()
	for {
		a := ask(t, base, "ann", "k")
		if a.status != http.StatusConflict || !strings.Contains(a.body, "in_progress") {
			return a
		}
	}
}

// A client that is gone before its key was claimed has asked for nothing, or for
// all of it: never for half.
func hangUpBeforeTheClaim[Tx any](t *testing.T, w *world[Tx], by way) {
	base := w.serve(t, by, once)
	reached, release := make(chan struct{}), make(chan struct{})
	w.hooks.onCall(func() { close(reached); <-release })
	hangUp(t, base, reached, release)
	if a := settled(t, base); a.status != http.StatusCreated || a.body != "made" {
		t.Errorf("the retry got %d %q", a.status, a.body)
	}
	w.wantEffects(t, "ann/k", 1)
}

// A client that hangs up while its handler runs changes nothing: the handler
// goes on, and the retry gets its answer.
func hangUpInTheHandler[Tx any](t *testing.T, w *world[Tx], by way) {
	reached, release := make(chan struct{}), make(chan struct{})
	runs := 0
	base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		if runs++; runs == 1 {
			close(reached)
			<-release
		}
		if err := r.Context().Err(); err != nil {
			return fmt.Errorf("the handler's context has ended: %w", err)
		}
		return once(rw, r, effect)
	})
	hangUp(t, base, reached, release)
	if a := settled(t, base); a.status != http.StatusCreated || !a.replayed {
		t.Errorf("the retry got %d %q, replayed %v", a.status, a.body, a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
}

// So does one that hangs up while the transaction commits.
func hangUpAtTheCommit[Tx any](t *testing.T, w *world[Tx], by way) {
	base := w.serve(t, by, once)
	reached, release := make(chan struct{}), make(chan struct{})
	w.hooks.onEnd(func() { close(reached); <-release })
	hangUp(t, base, reached, release)
	if a := settled(t, base); a.status != http.StatusCreated || !a.replayed {
		t.Errorf("the retry got %d %q, replayed %v", a.status, a.body, a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
}

// One that hangs up with half of the response gets all of it when it asks again.
func hangUpInTheResponse[Tx any](t *testing.T, w *world[Tx], by way) {
	whole := strings.Repeat("all of it ", 90_000)
	base := w.serve(t, by, func(rw http.ResponseWriter, _ *http.Request, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		_, err := io.WriteString(rw, whole)
		return err
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := request(ctx, base, "ann", "k")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	leave()
	_ = resp.Body.Close()
	if a := ask(t, base, "ann", "k"); a.status != http.StatusOK || a.body != whole || !a.replayed {
		t.Errorf("the retry got %d and %d bytes, replayed %v", a.status, len(a.body), a.replayed)
	}
	w.wantEffects(t, "ann/k", 1)
}
