package semelhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// overtaken has h served by two processes over one store. A first request is
// under way in b's, whose lease then ends; the answer is the other's, which
// ran it again.
func overtaken(t *testing.T, b *bench, h http.HandlerFunc, entered <-chan struct{}, send func(zombie string)) (zombie string, first answer) {
	t.Helper()
	op := define("op", plain{Policy: semel.AtLeastOnce(), Lease: time.Hour})
	zombie = b.leasedServer(t, op, options(), h)
	other, err := semel.New[semelTx](b.store, semel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	protect, err := semelhttp.Middleware(other, op, options())
	if err != nil {
		t.Fatal(err)
	}
	winner := serve(t, protect(h))
	send(zombie)
	<-entered
	b.ahead.Store(int64(2 * time.Hour))
	first = ask{}.do(t, winner)
	wantFirst(t, first, http.StatusOK, "run 2")
	return zombie, first
}

// TestCutOffStreamIsNotAnAnswer: a leader that lost its lease and had begun to
// stream is broken off, so that nobody takes its part for the whole.
func TestCutOffStreamIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	b, n, bar := newBench(t, semel.Options{}), new(atomic.Int64), newBarrier()
	h := func(w http.ResponseWriter, _ *http.Request) {
		run := n.Add(1)
		fmt.Fprintf(w, "run %d", run)
		if run == 1 {
			_ = http.NewResponseController(w).Flush()
			bar.wait()
		}
	}
	var resp *http.Response
	zombie, first := overtaken(t, b, h, bar.entered, func(zombie string) {
		var err error
		if resp, err = http.DefaultClient.Do(ask{}.request(t, zombie)); err != nil {
			t.Fatal(err)
		}
	})
	defer resp.Body.Close()
	close(bar.open)
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		t.Errorf("the zombie's client read %q to its end; it must not look complete", body)
	}
	wantReplay(t, ask{}.do(t, zombie), first)
}

// TestZombieAnswersWithTheWinner: what stands, not what it wrote.
func TestZombieAnswersWithTheWinner(t *testing.T) {
	t.Parallel()
	b, n, bar := newBench(t, semel.Options{}), new(atomic.Int64), newBarrier()
	h := func(w http.ResponseWriter, _ *http.Request) {
		run := n.Add(1)
		if run == 1 {
			bar.wait()
			w.Header().Set("Set-Cookie", "zombie=1")
		}
		fmt.Fprintf(w, "run %d", run)
	}
	late := make(chan answer)
	_, first := overtaken(t, b, h, bar.entered, func(zombie string) {
		go func() {
			got, err := ask{}.send(t, zombie)
			if err != nil {
				t.Error(err)
			}
			late <- got
		}()
	})
	close(bar.open)
	got := <-late
	wantReplay(t, got, first)
	if got.header.Get("Set-Cookie") != "" {
		t.Error("the zombie's own header came through")
	}
	if len(b.events.of(semel.EventFenced)) == 0 {
		t.Error("no fenced zombie was observed")
	}
}
