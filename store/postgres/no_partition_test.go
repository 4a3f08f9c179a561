package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A key whose partition was dropped, or does not exist yet, is refused by every call. The other
// changes of its batch are applied.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		pool := connect(t, database(t))
		p := divided(t, pool, postgres.PartitionOptions{})
		s := newStore(t, pool, postgres.Options{Isolation: level})
		check.Must(p.Drop(t.Context()))(t)
		for _, ago := range []time.Duration{5 * day, -30 * day} {
			for _, n := range []int{1, 3, 40} { // alone, one by one, from arrays
				changes := []store.Change{at(ago, "late", store.InProgress, 1)}
				for i := 1; i < n; i++ {
					changes = append(changes, at(0, string(level)+ago.String()+time.Duration(n*100+i).String(), store.InProgress, 1))
				}
				answers, err := s.Swap(t.Context(), changes)
				wantPlaces(t, changes, answers, err)
				tx, err := pool.Begin(t.Context())
				check.Require(t, err)
				for i := range changes[1:] {
					changes[i+1].To.Key += " tx"
					changes[i+1].To.ID = store.NewTimedID("test", "scope", changes[i+1].To.Key, time.Now())
				}
				answers, err = s.SwapTx(t.Context(), tx, changes)
				wantPlaces(t, changes, answers, err)
				check.NoError(t, tx.Commit(t.Context()), "the transaction did not go on")
			}
			noted, err := s.SwapNoted(t.Context(), at(ago, "late", store.Pending, 1), store.Note{Actor: "a", Reason: "r"})
			if err != nil || !errors.Is(noted.Err, store.ErrNoPartition) {
				t.Errorf("SwapNoted = %+v, %v, want ErrNoPartition", noted, err)
			}
			for _, failed := range []error{nil, errHandler} {
				last := at(ago, "late", store.Succeeded, 1)
				verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
					check.NoError(t, effect(ctx, tx, "late"))
					return &last, failed
				})
				check.ResultIs(verdict, err)(t, store.NotCommitted, store.ErrNoPartition, "Atomic")
			}
			check.Equal(t, effects(t, pool, "late"), 0, "a late key: effects")
		}
	}
}

// wantPlaces wants the first change without a place, and the others applied.
func wantPlaces(t *testing.T, changes []store.Change, answers []store.SwapResult, err error) {
	t.Helper()
	if err != nil || !errors.Is(answers[0].Err, store.ErrNoPartition) {
		t.Fatalf("Swap = %+v, %v, want the first without a place", answers[:min(1, len(answers))], err)
	}
	for i := range changes[1:] {
		if !answers[i+1].Applied(changes[i+1]) {
			t.Errorf("the result of its neighbour is %+v, want it applied", answers[i+1])
		}
	}
}

// While a partition is sealed, its records can be read, and are not changed.
func TestSealedPartition(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	c := at(5*day, "there", store.InProgress, 1)
	mustForce(t, s, c)
	mustExec(t, pool, `ALTER TABLE `+holding(t, p, 5*day).Name+` ADD CONSTRAINT semel_sealed CHECK (false) NOT VALID`)
	for _, n := range []int{1, 20} {
		changes := []store.Change{c}
		for i := 1; i < n; i++ {
			changes = append(changes, at(0, time.Duration(n*100+i).String(), store.InProgress, 1))
		}
		if answers, err := s.Swap(t.Context(), changes); err != nil || !answers[0].Applied(c) {
			t.Errorf("Swap of a change that was applied = %+v, %v, want it applied", answers[0], err)
		}
		changes[0].To.Owner = 7
		if answers, err := s.Swap(t.Context(), changes); err != nil || answers[0].Token != c.To.Token || answers[0].Err != nil {
			t.Errorf("Swap of another create = %+v, %v, want the current record", answers[0], err)
		}
		changes[0] = move(c, store.Succeeded)
		if answers, err := s.Swap(t.Context(), changes); err != nil || !answers[0].Busy {
			t.Errorf("Swap of a move = %+v, %v, want Busy", answers[0], err)
		}
	}
	done := move(c, store.Succeeded)
	check.ResultIs(finish(t, s, "effect", &done))(t, store.NotCommitted, store.ErrConflict, "Atomic")
	if _, err := p.Drop(t.Context()); err == nil {
		t.Error("Drop of what holds a leader = nil, want an error")
	}
	check.Result(finish(t, s, "effect", &done))(t, store.Committed, "Atomic once it is not sealed any more")
}
