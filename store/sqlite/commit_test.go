package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// finish runs a transaction that has one effect of key and ends with last.
func finish(t testing.TB, s *sqlite.Store, key string, last *store.Change) (store.Verdict, error) {
	t.Helper()
	return finishCtx(t.Context(), s, key, last)
}

// commitErrors are errors of COMMIT, with their verdicts.
func commitErrors() []struct {
	err  error
	want store.Verdict
} {
	return []struct {
		err  error
		want store.Verdict
	}{
		{codeError(5), store.NotCommitted},              // busy
		{codeError(5 | 1<<8), store.NotCommitted},       // busy with a recovery
		{codeError(6), store.NotCommitted},              // a locked table
		{codeError(19 | 3<<8), store.NotCommitted},      // a deferred foreign key
		{fieldError{5, 0}, store.NotCommitted},          // busy, as the driver with cgo reports it
		{fieldError{19, 19 | 3<<8}, store.NotCommitted}, // a foreign key, as the driver with cgo reports it
		{fmt.Errorf("commit: %w", fieldError{5, 5 | 1<<8}), store.NotCommitted},
		{codeError(10 | 4<<8), store.Unknown}, // fsync failed: it may be in the log
		{codeError(10 | 3<<8), store.Unknown}, // a write failed
		{codeError(13), store.Unknown},        // the disk is full
		{codeError(9), store.Unknown},         // interrupted
		{codeError(1), store.Unknown},         // no transaction is active
		{codeError(26), store.Unknown},
		{fieldError{10, 10 | 4<<8}, store.Unknown},
		{driver.ErrBadConn, store.Unknown},
		{io.ErrUnexpectedEOF, store.Unknown},
		{context.Canceled, store.Unknown},
	}
}

// An error of COMMIT is certain only if it is on the list. After an uncertain one the COMMIT may
// not have happened, or it was done and lost its reply: that is never reported as not done.
func TestCommitThatFailed(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	for i, row := range commitErrors() {
		for _, done := range []bool{false, true} {
			if done && row.want == store.NotCommitted {
				continue
			}
			key := fmt.Sprint(i, done)
			last := create(key, store.Succeeded, 1)
			b.setFault(atCommit(func(run func() error) error {
				if done {
					return errors.Join(run(), row.err)
				}
				return row.err
			}))
			verdict, err := finish(t, s, key, &last)
			b.setFault(atCommit(func(run func() error) error { return run() }))
			if verdict != row.want || !errors.Is(err, row.err) {
				t.Errorf("Atomic whose COMMIT (done: %v) fails with %#v = %v, %v, want %v", done, row.err, verdict, err, row.want)
			}
			if n, token := effects(t, b.DB, key), current(t, s, last); (n == 1) != done || (token == last.To.Token) != done {
				t.Errorf("after %#v of a COMMIT (done: %v): %d effects, and %+v is current", row.err, done, n, token)
			}
		}
	}
	afterwards := create("afterwards", store.Succeeded, 1)
	if verdict, err := finish(t, s, "afterwards", &afterwards); err != nil {
		t.Errorf("Atomic afterwards = %v, %v", verdict, err)
	}
}

// When the bound passes, the verdict is Unknown; the COMMIT keeps the right to
// write, and may still happen.
func TestCommitThatHangs(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	s.SetCommitBound(10 * time.Millisecond)
	goOn, gone := make(chan struct{}), make(chan struct{})
	b.setFault(atCommit(func(run func() error) error {
		<-goOn
		defer close(gone)
		return run()
	}))
	last := create("hangs", store.Succeeded, 1)
	verdict, err := finish(t, s, "hangs", &last)
	if verdict != store.Unknown || err == nil {
		t.Errorf("Atomic whose COMMIT hangs = %v, %v, want Unknown", verdict, err)
	}
	other := create("other", store.Succeeded, 1)
	s.SetPatience(10 * time.Millisecond)
	answers, err := s.Swap(t.Context(), []store.Change{other})
	if err != nil || !answers[0].Busy {
		t.Errorf("Swap beside a COMMIT that hangs = %+v, %v, want Busy", answers, err)
	}
	check.Equal(t, current(t, s, last), (store.Token{}), "the change is seen before it is committed")
	b.setFault(atCommit(func(run func() error) error { return run() }))
	close(goOn)
	<-gone
	s.SetPatience(time.Minute)
	s.SetCommitBound(time.Minute)
	mustApply(t, s, other) // after the COMMIT: one at a time writes
	if current(t, s, last) != last.To.Token || effects(t, b.DB, "hangs") != 1 {
		t.Error("the COMMIT that hung is not seen after it was done")
	}
}

// After a superseded last change no COMMIT is sent: SQLite's count of changed rows
// decides, and not the writes of a goroutine of the handler.
func TestNoCommitAfterASupersededLastChange(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	before := create("late", store.InProgress, 1)
	mustApply(t, s, before)
	sent := 0
	b.setFault(func(text string, run func() error, raw func(string) error) error {
		err := run()
		switch {
		case strings.Contains(text, "semel_records") && err == nil: // changes() is 1 now
			return raw(`INSERT INTO effects VALUES ('late')`)
		case text == "COMMIT":
			sent++
		}
		return err
	})
	for _, last := range []store.Change{
		create("late", store.Succeeded, 2),
		move(create("late", store.InProgress, 2), store.Succeeded),
		move(create("absent", store.InProgress, 2), store.Succeeded),
		create("late", store.InProgress, 1), // it existed before
	} {
		verdict, err := finish(t, s, "late", &last)
		check.ResultIs(verdict, err)(t, store.NotCommitted, store.ErrSuperseded, "Atomic (want NotCommitted, ErrSuperseded)")
	}
	b.setFault(func(_ string, run func() error, _ func(string) error) error { return run() })
	check.Equal(t, sent, 0, "COMMIT was sent")
	if n := effects(t, b.DB, "late"); n != 0 || current(t, s, before) != before.To.Token {
		t.Errorf("%d effects and %+v, want none and the first record", n, current(t, s, before))
	}
}

// A Swap whose COMMIT is rejected for a lock has changed nothing and is Busy; after
// any other error of COMMIT the outcome is unknown.
func TestSwapWithFailedCommit(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	changes := []store.Change{create("a", store.InProgress, 1), create("b", store.InProgress, 1)}
	b.setFault(atCommit(func(func() error) error { return codeError(5) }))
	answers, err := s.Swap(t.Context(), changes)
	if err != nil || !answers[0].Busy || !answers[1].Busy {
		t.Errorf("Swap whose COMMIT finds a lock = %+v, %v, want Busy", answers, err)
	}
	b.setFault(atCommit(func(run func() error) error { return errors.Join(run(), codeError(10)) }))
	if answers, err := s.Swap(t.Context(), changes); err == nil {
		t.Errorf("Swap whose COMMIT is lost = %+v, want an error", answers)
	}
	b.setFault(atCommit(func(run func() error) error { return run() }))
	for _, c := range changes {
		mustApply(t, s, c) // the retry gives the same answer
	}
}

// If the context ends before the commit, nothing is written, and the error is the
// context's.
func TestSwapCanceledBeforeTheCommit(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	b.setFault(func(text string, run func() error, _ func(string) error) error {
		if strings.HasPrefix(text, "INSERT INTO semel_records") {
			cancel()
		}
		return run()
	})
	a, c := create("a", store.InProgress, 1), create("b", store.InProgress, 1)
	if answers, err := s.Swap(ctx, []store.Change{a, c}); !errors.Is(err, context.Canceled) {
		t.Errorf("Swap = %+v, %v, want the context's error", answers, err)
	}
	if current(t, s, a) != (store.Token{}) || current(t, s, c) != (store.Token{}) {
		t.Error("a change was made all the same")
	}
}

// A transaction that is lost after run has returned takes the last change with it:
// the last change is not made alone.
func TestLastChangeNeedsItsTransaction(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	before := create("before", store.InProgress, 1)
	mustApply(t, s, before)
	beat := move(before, store.InProgress)
	beat.To.Due = time.Hour
	lost := 0
	b.setFault(func(text string, run func() error, raw func(string) error) error {
		err := run()
		if strings.HasPrefix(text, "RELEASE") {
			lost++
			return errors.Join(err, raw("ROLLBACK"))
		}
		return err
	})
	for _, last := range []store.Change{create("new", store.Succeeded, 1), move(before, store.Succeeded), beat} {
		verdict, err := finish(t, s, "key", &last)
		if verdict != store.NotCommitted || err == nil {
			t.Errorf("Atomic = %v, %v, want NotCommitted", verdict, err)
		}
	}
	check.Equal(t, lost, 3, "transactions were lost")
	answers, err := s.Get(t.Context(), []store.ID{before.To.ID, store.NewID("test", "scope", "new")})
	if err != nil || answers[0].Token != before.To.Token || answers[0].Record.Due > 0 || answers[1].Token != (store.Token{}) {
		t.Errorf("afterwards %+v, %v, want the first record", answers, err)
	}
	check.Equal(t, effects(t, b.DB, "key"), 0, "effects")
}

// If the driver fails to roll back, the store rolls back in another way, and the
// connection can be used again.
func TestRollbackThatFails(t *testing.T) {
	b := openFaulty(t, true)
	b.SetMaxOpenConns(1)
	s := sqlite.New(b.DB, sqlite.Options{})
	b.setFault(func(text string, run func() error, _ func(string) error) error {
		if text == "tx.Rollback" {
			return io.ErrUnexpectedEOF
		}
		return run()
	})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			return nil, errors.Join(errHandler, effect(ctx, tx, "key"))
		})
	check.ResultIs(verdict, err)(t, store.NotCommitted, errHandler, "Atomic (want NotCommitted and the handler's error)")
	check.Equal(t, effects(t, b.DB, "key"), 0, "effects")
	mustApply(t, s, last)
}
