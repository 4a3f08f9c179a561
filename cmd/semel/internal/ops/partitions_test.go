package ops_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// partition is a partition in the output of partitions list and partitions drop
// with --json.
type partition struct {
	Partition                 string
	From, To                  time.Time
	Sealed, Detached, Dropped bool
	Records, Pending, Kept    int
	InProgress                int `json:"in_progress"`
	InDoubt                   int `json:"in_doubt"`
}

type partitions struct {
	DryRun     bool `json:"dry_run"`
	Partitions []partition
}

func (s *testDB) partitions(t *testing.T, args ...string) (p partitions) {
	t.Helper()
	out := s.must(t, append([]string{"partitions", "--json"}, args...)...)
	check.Require(t, json.Unmarshal([]byte(out), &p), "partitions %v", args)
	return p
}

// exec changes the database directly.
func (s *testDB) exec(t *testing.T, text string) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), s.db))(t)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// addPartition adds a partition for a time in the past, and returns its name.
func (s *testDB) addPartition(t *testing.T, ago time.Duration) (name string) {
	t.Helper()
	from := time.Now().Add(-ago).Truncate(24 * time.Hour).UTC()
	name = "semel_records_p" + from.Format("20060102t150405")
	s.exec(t, `CREATE TABLE `+name+` (LIKE semel_records INCLUDING ALL)`)
	s.exec(t, fmt.Sprintf(`ALTER TABLE semel_records ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')`,
		name, store.FirstID(from), store.FirstID(from.Add(24*time.Hour))))
	return name
}

// insert inserts a record with a key of a past time.
func (s *testDB) insert(t *testing.T, ago time.Duration, key string, state store.State, expire time.Duration) {
	t.Helper()
	id := store.NewTimedID(payout.Name(), someScope().Bytes(), key, time.Now().Add(-ago))
	s.put(t, store.Record{ID: id, Token: token(state, 1), Key: key, Expire: expire})
}

// newDivided makes a database with three old partitions after the first one.
// Two of them have records, and one of these holds a record that must stay.
func newDivided(t *testing.T) (s *testDB, full, held string) {
	t.Helper()
	const day = 24 * time.Hour
	s = newPostgres(t)
	s.must(t, "partitions", "divide")
	// The state after a division one week ago.
	s.exec(t, `ALTER TABLE semel_records DETACH PARTITION semel_records_first`)
	from := time.Now().Add(-5 * day).Truncate(day).UTC()
	s.exec(t, fmt.Sprintf(`ALTER TABLE semel_records ATTACH PARTITION semel_records_first FOR VALUES FROM (MINVALUE) TO ('%s')`, store.FirstID(from)))
	full, held, _ = s.addPartition(t, 5*day), s.addPartition(t, 4*day), s.addPartition(t, 3*day)
	for i := range 3 {
		s.insert(t, 5*day, fmt.Sprint("old", i), store.Succeeded, -time.Hour)
	}
	s.insert(t, 4*day, "old", store.Failed, -time.Hour)
	s.insert(t, 4*day, "doubt", store.InDoubt, 0)
	return s, full, held
}

// TestPartitionsListAndCreate: the existing records are in the first partition,
// and new partitions are as wide as the last one.
func TestPartitionsListAndCreate(t *testing.T) {
	t.Parallel()
	s := newPostgres(t)
	for _, args := range [][]string{{"list"}, {"ahead"}, {"drop", "--keep", "24h"}} {
		s.runOn(t, append([]string{"partitions"}, args...)...).want(t, exit.Failed, "semel partitions divide")
	}
	id := s.makeInDoubt(t, callOf("k"))
	made := s.must(t, "partitions", "divide", "--width", "1h", "--ahead", "4")
	all := s.partitions(t, "list").Partitions
	if len(all) < 4 || !all[0].From.IsZero() || !strings.HasPrefix(made, fmt.Sprintf("partitions created: %d;", len(all))) {
		t.Fatalf("divide wrote %q, and there are %+v", made, all)
	}
	s.must(t, "show", id)
	if again := s.must(t, "partitions", "divide"); !strings.HasPrefix(again, "partitions created: ") || len(s.partitions(t, "list").Partitions) < len(all) {
		t.Errorf("a second divide wrote %q", again)
	}
	before := s.partitions(t, "list").Partitions
	s.must(t, "partitions", "ahead", "--ahead", "9")
	after := s.partitions(t, "list").Partitions
	if len(after) < len(before)+4 {
		t.Errorf("ahead --ahead 9 made of %d partitions %d", len(before), len(after))
	}
	for i, p := range after[1:] {
		if p.To.Sub(p.From) != time.Hour || !p.From.Equal(after[i].To) {
			t.Errorf("%+v does not follow %+v, an hour wide", p, after[i])
		}
	}
	if out := s.must(t, "partitions", "list"); !strings.Contains(out, after[0].Partition) || strings.Count(out, "\n") != len(after)+1 {
		t.Errorf("list wrote %s", out)
	}
}

// TestDropOldPartitions: drop only lists them without --yes. A partition with a
// record that must stay is not dropped.
func TestDropOldPartitions(t *testing.T) {
	t.Parallel()
	s, full, held := newDivided(t)
	if none := s.partitions(t, "drop", "--keep", "720h"); len(none.Partitions) != 0 || !none.DryRun {
		t.Errorf("drop --keep 720h = %+v, want nothing", none)
	}
	dry := s.partitions(t, "drop", "--keep", "24h")
	if !dry.DryRun || len(dry.Partitions) != 3 {
		t.Fatalf("drop = %+v, want three, and none dropped", dry)
	}
	if p := dry.Partitions[0]; p.Partition != full || p.Records != 3 || p.InDoubt != 0 || p.From.IsZero() {
		t.Errorf("the first is %+v, want %s with 3 records", p, full)
	}
	if p := dry.Partitions[1]; p.Partition != held || p.Records != 2 || p.InDoubt != 1 {
		t.Errorf("the second is %+v, want %s held by one of 2 records", p, held)
	}
	if out := s.must(t, "partitions", "drop", "--keep", "24h"); !strings.Contains(out, "would be dropped (--yes drops them): 2, with 3 records") {
		t.Errorf("drop wrote %s", out)
	}
	before := len(s.partitions(t, "list").Partitions)
	got := s.runOn(t, "partitions", "drop", "--keep", "24h", "--yes")
	got.want(t, exit.Failed, held+" holds records: 0 Pending, 0 InProgress, 1 InDoubt, 0 to be kept for longer")
	if !strings.Contains(got.out, "partitions dropped: 2, with 3 records") {
		t.Errorf("drop --yes wrote %s", got.out)
	}
	left := s.partitions(t, "list").Partitions
	if len(left) != before-2 || left[1].Partition != held || left[1].Sealed {
		t.Errorf("of %d partitions %+v are left, want all but two, and %s as it was", before, left, held)
	}
	s.exec(t, `DELETE FROM `+held+` WHERE state = 3`)
	if last := s.partitions(t, "drop", "--keep", "24h", "--yes"); last.DryRun || len(last.Partitions) != 1 || !last.Partitions[0].Dropped {
		t.Errorf("drop --yes of a partition that is no longer held = %+v", last)
	}
}
