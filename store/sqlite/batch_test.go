package sqlite_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// firstOf returns n first claims whose keys begin with name.
func firstOf(name string, n int) []store.Change {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(name, i)
	}
	return firstClaims(keys...)
}

// joining lets groups join, one after the other.
func joining(groups ...[]store.Change) func() []store.Change {
	return func() []store.Change {
		if len(groups) == 0 {
			return nil
		}
		group := groups[0]
		groups = groups[1:]
		return group
	}
}

// Changes that join others are made with them, in one transaction, and each is answered
// as if it had come by itself.
func TestChangesJoin(t *testing.T) {
	t.Parallel()
	s := sqlite.New(open(t), sqlite.Options{})
	mine, theirs := firstOf("mine", 9), firstOf("theirs", 9)
	wantApplied(t, s, mine, true)
	wantApplied(t, s, theirs, true)
	var ends []store.Change
	for _, c := range mine {
		c = move(c, store.Succeeded)
		c.To.Outcome = []byte("done")
		ends = append(ends, c)
	}
	again := firstOf("theirs", 9)
	for i := range again {
		again[i].To.Owner = 99
	}
	refused := create("refused", store.State(9), 1)
	groups := [][]store.Change{
		slices.Concat(ends[:5], firstOf("a", 20)),
		again[:1],
		firstOf("b", 3),
		slices.Concat(firstOf("c", 9), ends[5:], again[1:]),
		{refused},
	}
	next := joining(groups[1:]...)
	answers, err := s.SwapJoinable(t.Context(), groups[0], func() []store.Change {
		if got := current(t, s, groups[0][10]); got != (store.Token{}) {
			t.Errorf("%v is current before the commit", got)
		}
		return next()
	})
	all := slices.Concat(groups...)
	if err != nil || len(answers) != len(all) {
		t.Fatalf("SwapJoinable = %d answers, %v, want %d", len(answers), err, len(all))
	}
	for i, a := range answers {
		c := all[i]
		switch {
		case c.To.Owner == 99:
			if a.Record == nil || a.Token.Owner != 1 {
				t.Errorf("change %d, of a record that another has: %+v", i, a)
			}
		case c.To.Key == "refused":
			check.Fails(t, a.Err, "change %d cannot be kept: %+v", i, a)
		case !a.Applied(c), current(t, s, c) != c.To.Token:
			t.Errorf("change %d: %+v, want it applied", i, a)
		}
	}
}

// What joins is made later than what came before, by the store's clock too.
func TestJoiningChangeHasItsOwnTime(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	clock := func() (now int64) {
		check.Require(t, db.QueryRowContext(t.Context(), `SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000`).Scan(&now))
		return now
	}
	var came int64 // at least then
	groups := [][]store.Change{firstOf("first", 9), firstOf("joins", 9)}
	next := joining(groups[1])
	answers, err := s.SwapJoinable(t.Context(), groups[0], func() []store.Change {
		joins := next()
		for began := clock(); joins != nil && came < began+5000; {
			came = clock()
		}
		return joins
	})
	if err != nil || len(answers) != 18 {
		t.Fatalf("SwapJoinable = %d answers, %v", len(answers), err)
	}
	var created int64
	err = db.QueryRowContext(t.Context(), `SELECT created FROM semel_records WHERE id = ?`, groups[1][0].To.ID[:]).Scan(&created)
	if err != nil || created < came {
		t.Errorf("a change that joined at %d or later was created at %d (%v)", came, created, err)
	}
}

// If a trigger rejects a claim after its row was written, this claim is undone with the writes
// of the trigger, and all others are applied, also if they have joined.
func TestClaimIsRejectedAfterItsRow(t *testing.T) {
	t.Parallel()
	for name, groups := range map[string][][]store.Change{
		"alone":  {firstOf("k", 20)},
		"joined": {firstOf("first", 9), firstOf("k", 20)},
	} {
		db := open(t)
		s := sqlite.New(db, sqlite.Options{})
		mustExec(t, db, `CREATE TABLE seen (key BLOB UNIQUE);
INSERT INTO seen VALUES (CAST('k7' AS BLOB));
CREATE TRIGGER see AFTER INSERT ON semel_records BEGIN INSERT INTO seen VALUES (new.key); END`)
		all := slices.Concat(groups...)
		answers, err := s.SwapJoinable(t.Context(), groups[0], joining(groups[1:]...))
		if err != nil || len(answers) != len(all) {
			t.Fatalf("%s: SwapJoinable = %d answers, %v", name, len(answers), err)
		}
		for i, c := range all {
			refused := c.To.Key == "k7"
			checkClaim(t, name+": "+c.To.Key, answers[i], c, false, refused)
			check.Equal(t, current(t, s, c) == c.To.Token, !refused, "%s: claim of %s: made", name, c.To.Key)
		}
		var seen int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM seen`).Scan(&seen); err != nil || seen != len(all) {
			t.Errorf("%s: the trigger has seen %d keys, want %d (%v)", name, seen, len(all), err)
		}
	}
}

// When it fails, nothing of it is written, and the next one is not hindered.
func TestFailedJoinLeavesNothing(t *testing.T) {
	t.Parallel()
	twice := firstClaims("twice", "twice")
	for name, more := range map[string]func(context.CancelFunc) []store.Change{
		"cancelled": func(cancel context.CancelFunc) []store.Change { cancel(); return nil },
		"twice":     func(context.CancelFunc) []store.Change { return twice },
		"panic":     func(context.CancelFunc) []store.Change { panic(errHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sqlite.New(open(t), sqlite.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := firstOf("first", 9)
			err := func() (err error) {
				defer func() {
					if p, ok := recover().(error); ok {
						err = p
					}
				}()
				_, err = s.SwapJoinable(ctx, first, func() []store.Change { return more(cancel) })
				return err
			}()
			check.Fails(t, err, "it has not failed")
			if got := current(t, s, first[0]); got != (store.Token{}) {
				t.Errorf("%v is current", got)
			}
			wantApplied(t, s, first, true)
		})
	}
}

// No change joins while another connection has the database: all are Busy at once.
func TestBusyBatchAcceptsNoChanges(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	wantApplied(t, s, firstClaims("before"), true)
	begin(t, db)
	s.SetPatience(20 * time.Millisecond)
	first := firstOf("first", 9)
	answers, err := s.SwapJoinable(t.Context(), first, func() []store.Change {
		t.Error("it requested joining changes")
		return nil
	})
	if err != nil || len(answers) != len(first) || slices.ContainsFunc(answers, func(a store.SwapResult) bool { return !a.Busy }) {
		t.Errorf("SwapJoinable = %+v, %v, want all Busy", answers, err)
	}
}

// A store around this one sees all changes itself: it is not passed by.
func TestWrappedStoreSeesAllChanges(t *testing.T) {
	t.Parallel()
	inner := sqlite.New(open(t), sqlite.Options{})
	around := struct{ *sqlite.Store }{inner}
	if inner.Self() != store.Store(inner) || around.Self() == store.Store(around) {
		t.Error("Self is not the store itself")
	}
}
