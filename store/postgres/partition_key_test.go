package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// uuidOf is a UUIDv7 of that time; n tells those of one time apart.
func uuidOf(at time.Time, n int) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7abc-8def-%012x", ms>>16, ms&0xffff, n)
}

// A key runs once for many callers in several processes: keys of one time, and keys at the
// bounds of partitions.
func TestOncePerKeyAcrossPartitions(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		url := database(t)
		pool := connect(t, url)
		p := dividedBefore(t, pool, 4*time.Hour, postgres.PartitionOptions{Width: time.Hour})
		bound := holding(t, p, 0).To
		var keys []string
		for i, at := range []time.Time{
			bound.Add(-time.Millisecond), bound, bound.Add(time.Millisecond), bound, bound,
			bound.Add(-time.Hour), bound.Add(-time.Hour - time.Millisecond), bound.Add(time.Hour), time.Now(), time.Now().Add(-12 * time.Hour),
		} {
			keys = append(keys, uuidOf(at, i))
		}
		once := semel.Define("once", semel.OperationOptions[int]{KeyTime: semel.UUIDv7Time, Skew: 3 * time.Hour, Wait: time.Minute})
		leased := semel.Define("leased", semel.OperationOptions[int]{KeyTime: semel.UUIDv7Time, Skew: 3 * time.Hour, Wait: time.Minute, Policy: semel.Atomic(), Lease: time.Minute})
		operations := []*semel.Operation[int]{once}
		if level == pgx.ReadCommitted { // a leased finish is refused above it
			operations = append(operations, leased)
		}
		const processes, callers = 3, 2
		var all sync.WaitGroup
		for range processes {
			engine := check.Must(semel.New(newStore(t, connect(t, url), postgres.Options{Isolation: level}), semel.Options{Survive: store.NoFailure}))(t)
			for range callers {
				for i := range keys {
					for _, op := range operations {
						all.Go(func() { askUntilTold(t, engine, op, keys[i]) })
					}
				}
			}
		}
		all.Wait()
		for _, key := range keys {
			for _, op := range operations {
				check.Equal(t, effects(t, pool, op.Name()+key), 1, "at %q, %s %s: effects", level, op.Name(), key)
			}
		}
		if n := one[int](t, pool, `SELECT count(DISTINCT tableoid) FROM semel_records`); n < 4 {
			t.Errorf("the keys are in %d partitions, so that the test shows nothing", n)
		}
	}
}

// askUntilTold retries a call until it returns a result.
func askUntilTold(t *testing.T, engine *semel.Engine[pgx.Tx], op *semel.Operation[int], key string) {
	t.Helper()
	for {
		_, _, err := semel.DoTx(t.Context(), engine, op.Call(semel.Shared(), key, 1), func(ctx context.Context, tx pgx.Tx) (int, error) {
			return 1, effect(ctx, tx, op.Name()+key)
		})
		switch {
		case err == nil:
			return
		case errors.Is(err, semel.ErrInProgress), errors.Is(err, semel.ErrUnavailable):
			if t.Context().Err() != nil {
				t.Errorf("DoTx = %v", err)
				return
			}
		default:
			t.Errorf("DoTx = %v, want it done, or to ask again", err)
			return
		}
	}
}

// The records of a generation are dropped with their partition. A later retry runs
// again, and an earlier one does not, for every difference of the clocks.
func TestGenerationsLeaveAsAPartition(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		pool := connect(t, database(t))
		p := dividedBefore(t, pool, 9*time.Hour, postgres.PartitionOptions{Width: time.Hour, Keep: time.Hour})
		op := semel.Define("once", semel.OperationOptions[int]{Generation: time.Hour})
		start := time.Now().Truncate(time.Hour).Add(-6 * time.Hour)
		engineAt := func(clock time.Duration) *semel.Engine[pgx.Tx] {
			e := check.Must(semel.New(newStore(t, pool, postgres.Options{Isolation: level}), semel.Options{
				Survive: store.NoFailure,
				Clock:   func() time.Time { return start.Add(clock) },
			}))(t)
			return e
		}
		const minute = time.Minute
		for i, at := range []time.Duration{0, 59 * minute, 61 * minute, 119 * minute} {
			askUntilTold(t, engineAt(at), op, "k")
			check.Equal(t, effects(t, pool, "oncek"), 1, "asked for the %dth time it: effects", i)
		}
		// By the server's clock all of it is long past; so are the records, then.
		mustExec(t, pool, `UPDATE semel_records SET expires = clock_timestamp() - interval '1 second'`)
		if dropped, err := p.Drop(t.Context()); err != nil || len(dropped) < 2 {
			t.Fatalf("Drop = %v, %v, want the partitions of both generations among them", names(dropped), err)
		}
		check.Equal(t, one[int](t, pool, `SELECT count(*) FROM semel_records`), 0, "records are left")
		late := engineAt(0)
		if _, _, err := semel.DoTx(t.Context(), late, op.Call(semel.Shared(), "k", 1), func(ctx context.Context, tx pgx.Tx) (int, error) {
			return 1, effect(ctx, tx, "oncek")
		}); !errors.Is(err, semel.ErrUnavailable) {
			t.Errorf("DoTx in a generation that was dropped = %v, want ErrUnavailable", err)
		}
		check.Equal(t, effects(t, pool, "oncek"), 1, "it: effects")
		askUntilTold(t, engineAt(7*time.Hour), op, "k")
		check.Equal(t, effects(t, pool, "oncek"), 2, "after its generations it: effects")
	}
}

// A key whose partition was dropped is refused without an effect: by its own age and, if the
// operation would keep records for longer than their partition was there, because the store
// has no place for it.
func TestLateDuplicateAfterADrop(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	check.Must(divided(t, pool, postgres.PartitionOptions{}).Drop(t.Context()))(t)
	engine := check.Must(semel.New(newStore(t, pool, postgres.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	key := uuidOf(time.Now().Add(-5*day), 1)
	for retention, want := range map[time.Duration]error{30 * day: semel.ErrUnavailable, day: semel.ErrKeyExpired} {
		call := semel.Define("op", semel.OperationOptions[int]{KeyTime: semel.UUIDv7Time, Retention: retention}).Call(semel.Shared(), key, 1)
		_, _, inTx := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx pgx.Tx) (int, error) { return 1, effect(ctx, tx, key) })
		check.ErrorIs(t, inTx, want, "DoTx of a late duplicate")
		_, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (int, error) {
			t.Error("a late duplicate ran")
			return 1, nil
		})
		check.ErrorIs(t, err, want, "Do of a late duplicate")
	}
	check.Equal(t, effects(t, pool, key), 0, "a late duplicate: effects")
}
