package sqlite_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// atRecords is a fault of the statements that write records, and counts COMMITs.
func atRecords(commits *int, f func(run func() error) error) fault {
	return func(text string, run func() error, _ func(string) error) error {
		switch {
		case text == "COMMIT":
			*commits++
		case strings.HasPrefix(text, "INSERT INTO semel_records"), strings.HasPrefix(text, "UPDATE semel_records"):
			return f(run)
		}
		return run()
	}
}

// A single change is one statement. A lock makes it Busy, a constraint rejects only
// this change, and after any other error the outcome is unknown: a retry gives the
// same answer.
func TestSwapAlone(t *testing.T) {
	t.Parallel()
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	s.SetPatience(20 * time.Millisecond)
	commits, c := 0, create("key", store.InProgress, 1)
	for _, row := range []struct {
		err  error
		want func(store.SwapResult, error) bool
	}{
		{codeError(5), func(a store.SwapResult, err error) bool { return err == nil && a.Busy }},
		{fieldError{6, 0}, func(a store.SwapResult, err error) bool { return err == nil && a.Busy }},
		{codeError(18), func(a store.SwapResult, err error) bool { return err == nil && a.Err != nil && !a.Busy }},
		{codeError(19), func(a store.SwapResult, err error) bool { return err == nil && a.Err != nil && !a.Busy }},
		{codeError(13), func(_ store.SwapResult, err error) bool { return err != nil }},
	} {
		b.setFault(atRecords(&commits, func(func() error) error { return row.err }))
		answer, err := swap(t, s, c)
		if !row.want(answer, err) {
			t.Errorf("Swap whose statement fails with %#v = %+v, %v", row.err, answer, err)
		}
		if got := current(t, s, c); got != (store.Token{}) {
			t.Errorf("after %#v %+v is current, want nothing", row.err, got)
		}
	}
	b.setFault(atRecords(&commits, func(run func() error) error { return errors.Join(run(), codeError(10)) }))
	if answer, err := swap(t, s, c); err == nil {
		t.Errorf("Swap whose answer is lost = %+v, want an error", answer)
	}
	b.setFault(atRecords(&commits, func(run func() error) error { return run() }))
	for range 2 {
		mustApply(t, s, c)
	}
	other := c
	other.To.Owner++
	if answer, err := swap(t, s, other); err != nil || answer.Token != c.To.Token || answer.Record == nil {
		t.Errorf("Swap of another = %+v, %v, want the current record", answer, err)
	}
	check.Equal(t, commits, 0, "COMMITs were sent")
}

// swap makes one change.
func swap(t testing.TB, s *sqlite.Store, c store.Change) (store.SwapResult, error) {
	t.Helper()
	answers, err := s.Swap(t.Context(), []store.Change{c})
	if err != nil {
		return store.SwapResult{}, err
	}
	return answers[0], nil
}

// A statement that hangs has the time limit of a COMMIT, and keeps the write lock
// until it ends.
func TestSwapAloneThatHangs(t *testing.T) {
	t.Parallel()
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	s.SetCommitBound(10 * time.Millisecond)
	goOn, commits := make(chan struct{}), 0
	b.setFault(atRecords(&commits, func(run func() error) error {
		<-goOn
		return run()
	}))
	c, other := create("hangs", store.InProgress, 1), create("other", store.InProgress, 1)
	if answer, err := swap(t, s, c); err == nil {
		t.Errorf("Swap that hangs = %+v, want an error", answer)
	}
	s.SetPatience(10 * time.Millisecond)
	if answer, err := swap(t, s, other); err != nil || !answer.Busy {
		t.Errorf("Swap beside one that hangs = %+v, %v, want Busy", answer, err)
	}
	close(goOn)
	s.SetPatience(time.Minute)
	s.SetCommitBound(time.Minute)
	mustApply(t, s, other) // after the statement: one at a time writes
	if got := current(t, s, c); got != c.To.Token {
		t.Errorf("%+v is current, want the change of the statement that hung", got)
	}
}

// Another process can undo, between the statement and the read of the reason, the
// write that prevented the change. The change is then made.
func TestSwapAloneWhenTheOtherWriteIsUndone(t *testing.T) {
	t.Parallel()
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	before := create("key", store.InProgress, 1)
	mustApply(t, s, before)
	done := false
	b.setFault(func(text string, run func() error, raw func(string) error) error {
		err := run()
		if strings.HasPrefix(text, "INSERT INTO semel_records") && !done {
			done = true
			return errors.Join(err, raw(`DELETE FROM semel_records`))
		}
		return err
	})
	mustApply(t, s, create("key", store.InProgress, 2))
	if !done {
		t.Error("nothing was deleted in between")
	}
}

// If all connections are in use, a change waits for one as long as for a lock, and
// is not made later.
func TestSwapAloneWithoutAConnection(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.SetMaxOpenConns(1)
	s := sqlite.New(db, sqlite.Options{})
	c := create("key", store.InProgress, 1)
	mustApply(t, s, create("before", store.InProgress, 1))
	s.SetPatience(10 * time.Millisecond)
	taken := connect(t, db)
	if answer, err := swap(t, s, c); err != nil || !answer.Busy {
		t.Errorf("Swap = %+v, %v, want Busy", answer, err)
	}
	check.Require(t, taken.Close())
	if got := current(t, s, c); got != (store.Token{}) {
		t.Errorf("%+v is current, want nothing after Busy", got)
	}
}

// Many records are read together, in the order of the request, also twice.
func TestGetOfMany(t *testing.T) {
	t.Parallel()
	s := sqlite.New(open(t), sqlite.Options{})
	var changes []store.Change
	var ids []store.ID
	for i := range 70 {
		c := create(strings.Repeat("k", i+1), store.InProgress, uint64(i+1))
		if i%3 != 0 {
			changes = append(changes, c)
		}
		ids = append(ids, c.To.ID, c.To.ID)
	}
	check.Must(s.Swap(t.Context(), changes))(t)
	for n := range len(ids) {
		answers, err := s.Get(t.Context(), ids[:n])
		if err != nil || len(answers) != n {
			t.Fatalf("Get of %d = %d answers, %v", n, len(answers), err)
		}
		for i, a := range answers {
			owner := uint64(i/2 + 1)
			switch {
			case i/2%3 == 0:
				if a.Token != (store.Token{}) || a.Record != nil {
					t.Errorf("answer %d of %d is %+v, want nothing", i, n, a)
				}
			case a.Token.Owner != owner || a.Record.ID != ids[i] || len(a.Record.Key) != i/2+1:
				t.Errorf("answer %d of %d is %+v, want that of owner %d", i, n, a, owner)
			}
		}
	}
}
