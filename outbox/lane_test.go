package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestLaneIsGivenBackAgain: each poll gives a lane back that belongs to another relay, also in the
// instant in which its goroutine ends its wait. The goroutine must not wait for anything then.
func TestLaneIsGivenBackAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
		op := semel.Define("lane", semel.OperationOptions[struct{}]{Policy: semel.AtLeastOnce()})
		a, _, err := adapter.Begin(t.Context(), e, op.Call(semel.Shared(), "lane", struct{}{}))
		check.Require(t, err)
		l := newLane(nil, 0)
		l.attempt = a
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 20_000 {
				if l.wait(t.Context()) || l.pause(t.Context(), time.Hour) {
					t.Error("the lane goes on")
				}
			}
		}()
		go func() {
			for range 100_000 {
				l.giveBack()
			}
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the lane hangs")
			<-l.ending
		}
		a.Abandon()
		check.Require(t, e.Close(t.Context()))
	})
}
