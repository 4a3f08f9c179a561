package postgres_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

const (
	million = 1_000_000
	sample  = 20_000 // of what is purged in batches, for comparison
)

// A million old records are dropped with their partition. This writes almost nothing, and all
// concurrent claims succeed.
func TestAMillionLeaveAsAPartition(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	pool := connect(t, migrated(t, realtest.OwnPostgres(t)))
	p := divided(t, pool, postgres.PartitionOptions{})
	fill(t, pool, holding(t, p, 5*day), million)
	fill(t, pool, list(t, p)[0], sample)
	s := newStore(t, pool, postgres.Options{})
	engine := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure, Retention: 30 * day}))(t)
	op := semel.Define("op", semel.OperationOptions[int]{KeyTime: semel.UUIDv7Time})

	ctx, stop := context.WithCancel(t.Context())
	var claims atomic.Int64
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { claimOnAndOn(ctx, t, engine, op, w, &claims) })
	}
	dropped, wal, took := measured(t, pool, func() int {
		for claims.Load() < 20 && !t.Failed() { // until the writers are at work, or one has failed
			runtime.Gosched()
		}
		dropped, err := p.Drop(t.Context())
		check.NoError(t, err, "Drop")
		return len(dropped)
	})
	stop()
	writers.Wait()
	purged, purgeWAL, purgeTook := measured(t, pool, func() int {
		n, err := s.Purge(t.Context(), sample)
		check.NoError(t, err, "Purge")
		return n
	})

	const factor = million / sample
	t.Logf("%d partitions with %d records left in %v with %d bytes of WAL, beside %d claims", dropped, million, took, wal, claims.Load())
	t.Logf("Purge of as many, %d times a sample of %d: %v with %d bytes of WAL", factor, sample, factor*purgeTook, factor*purgeWAL)
	t.Attr("drop-seconds", fmt.Sprintf("%.2f", took.Seconds()))
	t.Attr("purge-seconds", fmt.Sprintf("%.2f", factor*purgeTook.Seconds()))
	t.Attr("drop-wal-bytes", fmt.Sprint(wal))
	if wal >= factor*purgeWAL/20 {
		t.Errorf("the drop wrote %d bytes of WAL, with the claims that were made meanwhile, want next to nothing of %d", wal, factor*purgeWAL)
	}
	if left := one[int](t, pool, `SELECT count(*) FROM semel_records WHERE operation = 'old'`); left != 0 || purged != sample || claims.Load() == 0 {
		t.Errorf("%d old records are left, %d were purged, %d claims were made", left, purged, claims.Load())
	}
}

// fill puts n records that may be purged into a partition.
func fill(t *testing.T, pool *pgxpool.Pool, p postgres.Partition, n int) {
	t.Helper()
	first := store.FirstID(p.From).String()[:12]
	mustExec(t, pool, `INSERT INTO `+p.Name+` (id, owner, expires, created, changed, attempt, state, priority, tainted, operation, scope, key, outcome)
SELECT ($1::text || substr(md5(i::text), 1, 20))::uuid, i, clock_timestamp() - interval '1 hour', clock_timestamp(), clock_timestamp(),
1, 4 + i % 2, 0, false, 'old', 'scope', i::text::bytea, 'jtrue' FROM generate_series(1, $2::integer) i`, first, n)
}

// measured returns the duration of do and the bytes that were written to the log during it.
func measured(t *testing.T, pool *pgxpool.Pool, do func() int) (n int, wal int64, took time.Duration) {
	t.Helper()
	at := one[string](t, pool, `SELECT pg_current_wal_lsn()::text`)
	begun := time.Now()
	n = do()
	took = time.Since(begun)
	return n, one[int64](t, pool, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::bigint`, at), took
}

// claimOnAndOn runs new keys, each of which must succeed: quickly at first, and
// then at longer and longer intervals, so that little is written by them.
func claimOnAndOn(ctx context.Context, t *testing.T, engine *semel.Engine[pgx.Tx], op *semel.Operation[int], w int, claims *atomic.Int64) {
	for i, pause := 0, 5*time.Millisecond; ctx.Err() == nil; i, pause = i+1, pause*9/8 {
		call := op.Call(semel.Shared(), uuidOf(time.Now(), w<<32|i), i)
		if _, _, err := semel.DoTx(t.Context(), engine, call, func(context.Context, pgx.Tx) (int, error) { return i, nil }); err != nil {
			t.Errorf("a claim beside the drop: %v", err)
			return
		}
		claims.Add(1)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
