package semelotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store"
)

// TestLateTaskBehindManyTokens: unused tokens are Pending as well, and were so before the task. The
// task is reported nevertheless.
func TestLateTaskBehindManyTokens(t *testing.T) {
	t.Parallel()
	r, s := newRig(t, semel.Options{}), plainstore.New(plainstore.Options{}).Bare()
	runner := check.Must(semel.NewRunner(s, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{mail}}))(t)
	t.Cleanup(func() { check.NoError(t, runner.Close(context.Background())) })
	stop := check.Must(r.telemetry.Watch(runner, semelotel.WatchOptions{Every: time.Nanosecond}))(t)
	t.Cleanup(func() { check.NoError(t, stop()) })
	form := onetime.Define[string]("form", onetime.Options{})
	for range 1200 {
		check.Must(form.Issue(t.Context(), runner, shop, time.Hour, "a"))(t)
	}
	check.Must(semel.Enqueue(t.Context(), runner, mail.Call(shop, "1", "a"), semel.EnqueueOptions{}))(t)
	realtest.Poll(t, "the late task", func() bool { // the store's clock may be coarse
		all := r.collected(t)
		return points(all["semel.records.overdue"])["mail pending"] == 1 && points(all["semel.queue.age"])["mail"] > 0
	})
}
