package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The partitions that Old lists for dropping are the ones that Drop drops, and the listed
// reasons keep the others. Listing changes nothing.
func TestOldIsWhatDropDoes(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	kept := at(4*day, "kept", store.Failed, 1)
	kept.To.Expire = time.Hour
	for _, c := range []store.Change{
		at(7*day, "running", store.InProgress, 1), expired(at(7*day, "old", store.Succeeded, 1)),
		at(6*day, "in doubt", store.InDoubt, 1), at(5*day, "queued", store.Pending, 1), kept,
		expired(at(3*day, "released", store.Pending, 1)), expired(at(3*day, "old", store.Succeeded, 1)),
		expired(at(0, "young", store.Succeeded, 1)),
	} {
		mustForce(t, s, c)
	}
	records := one[int](t, pool, `SELECT count(*) FROM semel_records`)

	old, err := p.Old(t.Context())
	check.Require(t, err, "Old")
	if now := one[int](t, pool, `SELECT count(*) FROM semel_records`); now != records {
		t.Errorf("%d records are there after Old, want all %d", now, records)
	}
	var would, held []string
	for _, o := range old {
		switch {
		case o.Held != nil:
			held = append(held, o.Held.Error())
		default:
			would = append(would, o.Name)
		}
	}
	if full := holding(t, p, 3*day); recordsOf(old, full.Name) != 2 || recordsOf(old, holding(t, p, 7*day).Name) != 2 {
		t.Errorf("Old = %+v, want two records in %s and in that of a week ago", old, full.Name)
	}
	dropped, err := p.Drop(t.Context())
	if diff := cmp.Diff(would, names(dropped)); diff != "" || len(would) < 3 {
		t.Errorf("what was dropped (-reported +done): %s\nof %v", diff, would)
	}
	if diff := cmp.Diff(held, reasons(err)); diff != "" || len(held) != 4 {
		t.Errorf("what was held (-reported +done): %s\nof %v", diff, held)
	}
}

func TestOldOfATableThatIsNotDivided(t *testing.T) {
	t.Parallel()
	p := partitions(t, connect(t, database(t)), postgres.PartitionOptions{})
	if old, err := p.Old(t.Context()); !errors.Is(err, postgres.ErrNotDivided) {
		t.Errorf("Old = %v, %v, want ErrNotDivided", old, err)
	}
}

func recordsOf(old []postgres.OldPartition, name string) int64 {
	for _, o := range old {
		if o.Name == name {
			return o.Records
		}
	}
	return -1
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
