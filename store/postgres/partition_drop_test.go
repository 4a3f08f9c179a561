package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Old partitions whose records may all be purged are dropped. A record that is unfinished or
// has a longer retention keeps its partition. Old lists both before, and changes nothing.
func TestDrop(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	kept := map[time.Duration]store.Change{
		7 * day: at(7*day, "running", store.InProgress, 1),
		6 * day: at(6*day, "in doubt", store.InDoubt, 1),
		5 * day: at(5*day, "queued", store.Pending, 1),
		4 * day: at(4*day, "kept", store.Succeeded, 1),
	}
	later := kept[4*day]
	later.To.Expire = time.Hour
	kept[4*day] = later
	for ago, c := range kept {
		mustForce(t, s, c)
		mustForce(t, s, expired(at(ago, "old", store.Succeeded, 1)))
	}
	for _, state := range []store.State{store.Succeeded, store.Failed, store.Pending} {
		mustForce(t, s, expired(at(3*day, state.String(), state, 1)))
	}
	young := expired(at(0, "young", store.Succeeded, 1))
	mustForce(t, s, young)
	gone := []postgres.Partition{holding(t, p, 3*day), holding(t, p, 8*day)}

	records := one[int](t, pool, `SELECT count(*) FROM semel_records`)
	old := check.Must(p.Old(t.Context()))(t)
	check.Equal(t, one[int](t, pool, `SELECT count(*) FROM semel_records`), records, "records after Old")
	var would, held []string
	for _, o := range old {
		if o.Held != nil {
			held = append(held, o.Held.Error())
		} else {
			would = append(would, o.Name)
		}
		for ago, n := range map[time.Duration]int64{3 * day: 3, 7 * day: 2} {
			if o.Name == holding(t, p, ago).Name {
				check.Equal(t, o.Records, n, "records that Old counts in %s", o.Name)
			}
		}
	}
	dropped, err := p.Drop(t.Context())
	if diff := cmp.Diff(would, names(dropped)); diff != "" {
		t.Errorf("what was dropped (-listed by Old +dropped): %s", diff)
	}
	if diff := cmp.Diff(held, reasons(err)); diff != "" || len(held) != len(kept) {
		t.Errorf("what was held (-listed by Old +held): %s", diff)
	}
	for _, one := range gone {
		if !slices.Contains(names(dropped), one.Name) || slices.Contains(names(list(t, p)), one.Name) {
			t.Errorf("dropped %v, want %s among them", names(dropped), one.Name)
		}
	}
	for ago, c := range kept {
		if got := current(t, s, c); got != c.To.Token {
			t.Errorf("the record of %s is %+v, want %+v", c.To.Key, got, c.To.Token)
		}
		held := holding(t, p, ago)
		if held.Sealed || err == nil || !strings.Contains(err.Error(), held.Name) {
			t.Errorf("partition %+v is not reported as held: %v", held, err)
		}
	}
	for _, what := range []string{" 1 Pending", " 1 InProgress", " 1 InDoubt", " 1 to be kept for longer"} {
		if err == nil || strings.Count(err.Error(), what) != 1 {
			t.Errorf("Drop = %v, want%s once", err, what)
		}
	}
	if one, ok := errtype.Find[*postgres.HeldError](err); !ok || one.Pending+one.InProgress+one.InDoubt+one.Kept != 1 {
		t.Errorf("Drop = %v, want *HeldErrors of one record each", err)
	}
	if got := current(t, s, young); got != young.To.Token {
		t.Errorf("the young record is %+v, want %+v", got, young.To.Token)
	}
	if all := list(t, p); !all[0].First() {
		t.Errorf("the first partition is gone: %+v", all)
	}
	if again, err := p.Drop(t.Context()); len(again) != 0 || err == nil {
		t.Errorf("Drop once more = %v, %v, want nothing more", again, err)
	}
}

// reasons are the texts of the *HeldErrors that err joins.
func reasons(err error) (texts []string) {
	var walk func(error)
	walk = func(err error) {
		if held, ok := err.(*postgres.HeldError); ok { //nolint:errorlint // each of several errors is asked for
			texts = append(texts, fmt.Sprint(held))
			return
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				walk(e)
			}
			return
		}
		if inner := errors.Unwrap(err); inner != nil {
			walk(inner)
		}
	}
	walk(err)
	return texts
}

// Purge does not remove, and does not count, the records of a partition that will be dropped.
func TestPurgeLeavesPartitionsToTheirDrop(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	untimed, before, old := expired(create("untimed", store.Succeeded, 1)), expired(at(30*day, "before", store.Succeeded, 1)), expired(at(5*day, "old", store.Succeeded, 1))
	for _, c := range []store.Change{untimed, before, old} {
		mustForce(t, s, c)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].Records != 3 || counts[0].Purgeable != 2 {
		t.Errorf("Counts = %+v, %v, want three records, and two of them for Purge", counts, err)
	}
	for _, want := range []int{1, 1, 0} {
		check.Result(s.Purge(t.Context(), 1))(t, want, "Purge")
	}
	if got := current(t, s, old); got != old.To.Token {
		t.Errorf("the record in a partition is %+v, want %+v", got, old.To.Token)
	}
}

// A claim that is in flight while the partition is sealed is found before the drop.
func TestDropBesideAClaim(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{LockTimeout: 100 * time.Millisecond}) // long enough to be seen waiting
	s := newStore(t, pool, postgres.Options{})
	there := expired(at(5*day, "there", store.Failed, 1))
	mustForce(t, s, there)
	older := partitions(t, pool, postgres.PartitionOptions{Keep: 5 * day}) // for whose end a drop would wait
	check.Must(older.Drop(t.Context()))(t)
	tx := check.Must(pool.Begin(t.Context()))(t)
	claim, again := at(5*day, "claimed", store.InProgress, 1), move(there, store.Pending)
	again.To.Owner, again.To.Expire = 2, 0
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{claim, again}); err != nil || !answers[0].Applied(claim) || !answers[1].Applied(again) {
		t.Fatalf("SwapTx = %+v, %v", answers, err)
	}
	dropped := dropUntil(t.Context(), t, pool, p, `SELECT count(*) FROM pg_locks
WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock' AND NOT granted AND relation = '`+holding(t, p, 5*day).Name+`'::regclass`)
	check.Require(t, tx.Commit(t.Context()))
	err := <-dropped
	if held, ok := errtype.Find[*postgres.HeldError](err); !ok || held.InProgress != 1 || held.Pending != 1 {
		t.Errorf("Drop = %v, want what was claimed meanwhile", err)
	}
	if holding(t, p, 5*day).Sealed {
		t.Error("the partition is still sealed")
	}
	for _, c := range []store.Change{claim, again} {
		done := move(c, store.Succeeded)
		mustForce(t, s, done)
	}
}

// A drop that was interrupted at any step is continued by Run in another process.
func TestDropThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"DELETE FROM", "ADD CONSTRAINT semel_sealed", "DETACH PARTITION", "DROP TABLE"} {
		url := database(t)
		pool := connect(t, url)
		next := divided(t, pool, postgres.PartitionOptions{})
		mustForce(t, newStore(t, pool, postgres.Options{}), expired(at(7*day, "old", store.Succeeded, 1)))
		config := check.Must(pgx.ParseConfig(url))(t)
		for _, cut := range []func(*realtest.Proxy, realtest.Match) *realtest.Fault{(*realtest.Proxy).CutBefore, (*realtest.Proxy).CutAfter} {
			proxy := realtest.NewProxy(t, addressOf(config))
			p := partitions(t, connect(t, proxy.URL(url)), postgres.PartitionOptions{})
			fault := cut(proxy, realtest.SQL(step))
			if _, err := p.Drop(t.Context()); err == nil {
				t.Errorf("Drop that is cut at %q = nil, want an error", step)
			}
			fault.Wait(t)
		}
		check.NoError(t, next.Once(t.Context()), "Run after a drop was cut at %q", step)
		wantNoneOld(t, pool, next)
	}
}

// wantNoneOld requires that no old partition is left, and no table that was one.
func wantNoneOld(t *testing.T, pool *pgxpool.Pool, p *postgres.Partitions) {
	t.Helper()
	all := list(t, p)
	for _, one := range all {
		if one.Sealed || one.Detached || !one.First() && one.To.Before(time.Now().Add(-day)) {
			t.Errorf("partition %+v is still there", one)
		}
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'semel_records_%'`); n != len(all) {
		t.Errorf("there are %d tables, and %d partitions", n, len(all))
	}
}

// Run continues while partitions are held, reports them, and ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url)
	s := newStore(t, pool, postgres.Options{})
	told := make(chan error, 100)
	p := divided(t, pool, postgres.PartitionOptions{Every: time.Millisecond, OnError: func(err error) {
		select {
		case told <- err:
		default:
		}
	}})
	mustForce(t, s, at(5*day, "running", store.InProgress, 1))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, one := range []*postgres.Partitions{p, partitions(t, connect(t, url), postgres.PartitionOptions{Every: time.Millisecond})} {
		all.Go(func() {
			if err := one.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v, want its context's error", err)
			}
		})
	}
	for range 3 {
		if held, ok := errtype.Find[*postgres.HeldError](<-told); !ok || held.InProgress != 1 {
			t.Errorf("reported %+v, want the held ones", held)
		}
	}
	cancel()
	all.Wait()
	mustExec(t, pool, `DROP TABLE semel_records CASCADE`)
	check.ErrorIs(t, partitions(t, pool, postgres.PartitionOptions{}).Run(t.Context()), postgres.ErrNoSchema, "Run without the table")
}

// A partition that is dropped while the partitions are listed is not listed, and
// does not end Run.
func TestListWhileOneIsDropped(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	before := list(t, p)
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	check.Require(t, err)
	defer tx.Rollback(context.Background())   //nolint:errcheck // nothing was written
	mustExec(t, tx, `SELECT 1 FROM pg_class`) // sees what is there now
	goes := before[len(before)-1]
	mustExec(t, pool, `DROP TABLE `+goes.Name)
	got, err := p.ListIn(t.Context(), tx)
	if want := before[:len(before)-1]; err != nil || !slices.Equal(got, want) {
		t.Errorf("the list while %s is dropped = %v, %v, want all others", goes.Name, names(got), err)
	}
}
