package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// watchChecks test stores that report changes.
func watchChecks() []storeCheck {
	return []storeCheck{
		{"ChangedBefore", ifWatcher(watchChangedBefore)},
		{"ChangedMeanwhile", ifWatcher(watchChangedMeanwhile)},
		{"Purged", ifWatcher(watchPurged)},
		{"Ends", ifWatcher(watchEnds)},
	}
}

func ifWatcher(run func(r *harness, w store.Watcher)) func(*harness) {
	return func(r *harness) {
		w, ok := r.store.(store.Watcher)
		if !ok {
			r.Skip("the store is no store.Watcher")
		}
		run(r, w)
	}
}

// watch calls Watch in a goroutine of its own. A Watch that reports nothing fails in the end.
func (r *harness) watch(w store.Watcher, rec store.Record) (result <-chan error) {
	out := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
		defer cancel()
		out <- w.Watch(ctx, rec.ID, rec.Token)
	}()
	return out
}

// A caller that has read an earlier token, or a record that is gone, does not wait.
func watchChangedBefore(r *harness, w store.Watcher) {
	rec := r.mustCreateIn(store.InProgress)
	r.mustApply(move(rec, token(store.Succeeded, 1)))
	check.NoError(r, <-r.watch(w, rec), "Watch of a record that has changed")
	gone := r.fresh()
	gone.Token = rec.Token
	check.NoError(r, <-r.watch(w, gone), "Watch of a record that does not exist")
}

// The end of an attempt is reported, also after heartbeats, whichever comes first: the Watch
// or the change.
func watchChangedMeanwhile(r *harness, w store.Watcher) {
	for range 5 {
		rec := r.mustCreateIn(store.InProgress)
		first, second := r.watch(w, rec), r.watch(w, rec)
		for range 3 {
			r.mustApply(move(rec, rec.Token))
		}
		r.mustApply(move(rec, token(store.Succeeded, 1)))
		check.NoError(r, <-first, "Watch")
		check.NoError(r, <-second, "the second Watch")
	}
}

// A purge changes the token to the zero token.
func watchPurged(r *harness, w store.Watcher) {
	rec := r.expiring(store.Succeeded, -time.Second)
	watched := r.watch(w, rec)
	r.mustPurge(10, 1)
	check.NoError(r, <-watched, "Watch")
}

// Watch ends with its context.
func watchEnds(r *harness, w store.Watcher) {
	rec := r.mustCreateIn(store.InProgress)
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Watch(ctx, rec.ID, rec.Token) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		r.Errorf("Watch = %v, want the error of its context", err)
	}
}
