package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// A partitioned table is as good a store as a plain one.
func TestContractPartitioned(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres partitioned")
	url := database(t)
	pool := connect(t, url)
	spread(t, pool)
	run(t, url, url, postgres.Options{}, append(storetest.CallParts(), "Time", "Zombie", "ZombieTx", "PurgeTx", "Transition", "TransitionTx"))
	if n := one[int](t, pool, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'semel_records'::regclass`); n < 10 {
		t.Errorf("the table has %d partitions, so that the test shows nothing", n)
	}
}

// Divide keeps the records, in the first partition, their notes, the indexes and the
// privileges that the table's owner has granted. A second Divide changes nothing.
func TestDivide(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	mustExec(t, pool, `GRANT SELECT, UPDATE ON semel_records TO pg_monitor`)
	mustExec(t, pool, `GRANT INSERT ON semel_records TO PUBLIC`)
	s := newStore(t, pool, postgres.Options{})
	untimed, old, ahead := create("untimed", store.Pending, 1), at(30*day, "old", store.InProgress, 1), at(-5*day, "ahead", store.Succeeded, 1)
	for _, c := range []store.Change{untimed, old, ahead} {
		mustForce(t, s, c)
	}
	p := partitions(t, pool, postgres.PartitionOptions{})
	_, listed := p.List(t.Context())
	_, ensured := p.Ensure(t.Context())
	_, oldest := p.Old(t.Context())
	for name, err := range map[string]error{"List": listed, "Ensure": ensured, "Old": oldest} {
		check.ErrorIs(t, err, postgres.ErrNotDivided, "%s of a plain table", name)
	}
	var before []postgres.Partition
	for range 2 {
		check.Require(t, p.Divide(t.Context()))
		all := list(t, p)
		if before != nil && !slices.Equal(all, before) {
			t.Errorf("divided once more it is %+v, want %+v as before", all, before)
		}
		before = all
	}
	if first := before[0]; !first.First() || first.To.Before(time.Now().Add(5*day)) || first.To.UnixMilli()%day.Milliseconds() != 0 {
		t.Errorf("the first partition is %+v, want all that was there, to the end of a day", first)
	}
	for _, c := range []store.Change{untimed, old, ahead} {
		if got := current(t, s, c); got != c.To.Token || place(t, pool, c) != "semel_records_first" {
			t.Errorf("%+v is stored in %s, want %+v in the first partition", got, place(t, pool, c), c.To.Token)
		}
		finished := move(c, store.Succeeded)
		finished.To.Owner = 2
		mustForce(t, s, finished)
	}
	later := at(-(9 * day), "later", store.Pending, 1)
	check.Must(p.Ensure(t.Context()))(t)
	if answers, err := s.Swap(t.Context(), []store.Change{later}); err != nil || !errors.Is(answers[0].Err, store.ErrNoPartition) {
		t.Errorf("Swap of a record without a partition = %+v, %v, want ErrNoPartition", answers, err)
	}
	if got := one[string](t, pool, `SELECT string_agg(privilege_type || ' ' || a.grantee::regrole::text, ', ' ORDER BY 1) FROM pg_class c, aclexplode(relacl) a
WHERE c.oid = 'semel_records'::regclass AND a.grantee <> c.relowner`); strings.Count(got, "pg_monitor") != 2 || strings.Count(got, "INSERT -") != 1 {
		t.Errorf("the new table's privileges are %s", got)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pg_indexes WHERE tablename = 'semel_records'`); n != 6 {
		t.Errorf("the new table has %d indexes, want the 6 of the old one", n)
	}
	check.NoError(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}), "migrate, of a table that is divided")
}

// Partitions follow each other, and end with multiples of the width.
func TestEnsure(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	divided(t, pool, postgres.PartitionOptions{})
	wider := partitions(t, pool, postgres.PartitionOptions{Width: 7 * time.Hour, Ahead: 24})
	if made, err := wider.Ensure(t.Context()); err != nil || made == 0 {
		t.Fatalf("Ensure of another width = %d, %v, want some", made, err)
	}
	check.Result(wider.Ensure(t.Context()))(t, 0, "Ensure once more")
	all := list(t, wider)
	for i, p := range all[1:] {
		if !p.From.Equal(all[i].To) || !p.To.After(p.From) {
			t.Errorf("partition %+v follows %+v", p, all[i])
		}
		if width := p.To.UnixMilli() % (7 * time.Hour).Milliseconds(); width != 0 && p.To.UnixMilli()%day.Milliseconds() != 0 {
			t.Errorf("partition %+v ends with no multiple of a width", p)
		}
	}
	if last := all[len(all)-1]; last.To.Before(time.Now().Add(7 * day)) {
		t.Errorf("the last partition is %+v, want time for a week", last)
	}
}

// Ten processes call Divide while others write records and read the view. It is done once, and
// no writer and no reader fails or misses a record.
func TestDivideWhileOthersWrite(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url)
	s := newStore(t, pool, postgres.Options{})
	ctx, stop := context.WithCancel(t.Context())
	var writers, keepers sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c := at(0, strings.Repeat("k", w+1)+time.Duration(i).String(), store.InProgress, uint64(w*1000+i+1))
				answers, err := s.Swap(t.Context(), []store.Change{c})
				for err == nil && answers[0].Busy {
					answers, err = s.Swap(t.Context(), []store.Change{c})
				}
				if err != nil || !answers[0].Applied(c) {
					t.Errorf("Swap = %+v, %v, want it applied", answers, err)
					return
				}
				mu.Lock()
				written++
				mu.Unlock()
			}
		})
	}
	for range 2 {
		writers.Go(func() {
			for seen := 0; ctx.Err() == nil; {
				n := -1
				if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM semel_record_view`).Scan(&n); err != nil || n < seen {
					t.Errorf("the view has %d records, %v, want %d or more", n, err, seen)
					return
				}
				seen = n
			}
		})
	}
	for range 10 {
		keepers.Go(func() {
			p := partitions(t, connect(t, url), postgres.PartitionOptions{})
			err := p.Divide(t.Context())
			if _, dropErr := p.Drop(t.Context()); err != nil || dropErr != nil {
				t.Errorf("Divide, Drop = %v, %v", err, dropErr)
			}
		})
	}
	keepers.Wait()
	stop()
	writers.Wait()
	for _, name := range []string{"semel_records", "semel_record_view"} {
		if n := one[int](t, pool, `SELECT count(*) FROM `+name); n != written || n == 0 {
			t.Errorf("%s has %d records, want the %d that were written", name, n, written)
		}
	}
}

// After an interrupted Divide, the next one starts again.
func TestDivideAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url)
	config := check.Must(pgx.ParseConfig(url))(t)
	for _, cut := range []string{`ADD CONSTRAINT ` + "semel_first_bound", `VALIDATE CONSTRAINT`, `RENAME TO semel_records_first`, `PARTITION BY RANGE`, `CREATE TABLE "public"."semel_records_p`} {
		proxy := realtest.NewProxy(t, addressOf(config))
		p := partitions(t, connect(t, proxy.URL(url)), postgres.PartitionOptions{})
		fault := proxy.CutAfter(realtest.SQL(cut))
		check.Fails(t, p.Divide(t.Context()), "Divide that is cut at %q", cut)
		fault.Wait(t)
	}
	check.Require(t, partitions(t, pool, postgres.PartitionOptions{}).Divide(t.Context()))
	tellStory(t, newStore(t, pool, postgres.Options{}), "story")
}

// A table that another tool has partitioned is not changed.
func TestPartitionsOfOthers(t *testing.T) {
	t.Parallel()
	for _, bounds := range []string{"", `DEFAULT`, `FOR VALUES FROM (MINVALUE) TO ('10000000-0000-0000-0000-000000000000')`} {
		pool := connect(t, database(t))
		mustExec(t, pool, `ALTER TABLE semel_records RENAME TO semel_mine`)
		mustExec(t, pool, `CREATE TABLE semel_records (LIKE semel_mine) PARTITION BY RANGE (id)`)
		if bounds != "" {
			mustExec(t, pool, `CREATE TABLE mine PARTITION OF semel_records `+bounds)
		}
		check.Fails(t, partitions(t, pool, postgres.PartitionOptions{}).Run(t.Context()), "Run with partitions %q that another tool made", bounds)
		if n, want := one[int](t, pool, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'semel_records'::regclass`), min(len(bounds), 1); n != want {
			t.Errorf("there are %d partitions, want %d as before", n, want)
		}
	}
}

func TestPartitionOptionsAreChecked(t *testing.T) {
	t.Parallel()
	s, _ := open(t, postgres.Options{})
	for field, o := range map[string]postgres.PartitionOptions{
		"Width":       {Width: time.Second},
		"Width ":      {Width: time.Hour + 1},
		"Keep":        {Keep: -1},
		"Every":       {Every: -1},
		"LockTimeout": {LockTimeout: -1},
		"Ahead":       {Ahead: -1},
	} {
		if _, err := postgres.NewPartitions(s, o); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("NewPartitions(%+v) = %v, want %s named", o, err, field)
		}
	}
	if _, err := postgres.NewPartitions(nil, postgres.PartitionOptions{}); err == nil {
		t.Error("NewPartitions without a store = nil, want an error")
	}
}
