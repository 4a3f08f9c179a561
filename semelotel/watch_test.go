package semelotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// TestWatchOfAStoreThatCannotCount: the oldest due call and the lease that expired first are
// reported, so that the alerts about queues and leases work.
func TestWatchOfAStoreThatCannotCount(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) store.Store{
		"a bare store": func(*testing.T) store.Store { return plainstore.New(plainstore.Options{}).Bare() },
		"redis": func(t *testing.T) store.Store {
			t.Helper()
			t.Attr("engine", "redis")
			return check.Must(redis.New(realtest.OwnRedis(t).Client(t), redis.Options{}))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := newRig(t, semel.Options{}), open(t)
			runner := r.startBare(t, s)
			watched := func(want map[string]map[string]float64) {
				got := map[string]map[string]float64{}
				for name, m := range r.collected(t) {
					got[name] = points(m)
				}
				for of, age := range got["semel.queue.age"] {
					if age <= 0 || age > 60 {
						t.Errorf("the age of the queue of %s is %v seconds", of, age)
					}
					got["semel.queue.age"][of] = 1
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("metrics differ (-want +got):\n%s", diff)
				}
			}
			watched(map[string]map[string]float64{"semel.watch.up": {"": 1}})
			for _, key := range []string{"1", "2"} {
				check.Must(semel.Enqueue(t.Context(), runner, mail.Call(shop, key, "a"), semel.EnqueueOptions{}))(t)
			}
			_, _, err := semel.Do(t.Context(), runner, charge.Call(shop, "1", "a"), func(ctx context.Context) (string, error) {
				a, _ := semel.AttemptOf(ctx)
				expired := a.Record()
				expired.Due = time.Microsecond
				check.Must(s.Swap(ctx, []store.Change{{If: a.Token(), To: expired}}))(t)
				watched(map[string]map[string]float64{
					"semel.watch.up": {"": 1}, "semel.queue.age": {"mail": 1}, "semel.records.overdue": {"mail pending": 1, "charge inprogress": 1},
				})
				return "a", nil
			})
			check.NoError(t, err)
		})
	}
}

// TestLateTaskBehindManyTokens: unused tokens are Pending as well, and were so before the task. The
// task is reported nevertheless.
func TestLateTaskBehindManyTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{})
	runner := r.startBare(t, plainstore.New(plainstore.Options{}).Bare())
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
