package postgres_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

const day = 24 * time.Hour

// past is the age of the partitioning in these tests.
const past = 10 * day

// divided partitions the table as of ten days ago, and makes the partitions since
// then, one for each day.
func divided(t testing.TB, pool *pgxpool.Pool, o postgres.PartitionOptions) *postgres.Partitions {
	t.Helper()
	return dividedBefore(t, pool, past, o)
}

// dividedBefore is divided with another age.
func dividedBefore(t testing.TB, pool *pgxpool.Pool, ago time.Duration, o postgres.PartitionOptions) *postgres.Partitions {
	t.Helper()
	p := partitions(t, pool, o)
	p.SetAhead(-ago)
	check.Require(t, p.Divide(t.Context()), "Divide")
	p.SetAhead(0)
	if _, err := p.Ensure(t.Context()); err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	return p
}

func partitions(t testing.TB, pool *pgxpool.Pool, o postgres.PartitionOptions) *postgres.Partitions {
	t.Helper()
	p, err := postgres.NewPartitions(newStore(t, pool, postgres.Options{}), o)
	check.Require(t, err, "NewPartitions")
	return p
}

func list(t testing.TB, p *postgres.Partitions) []postgres.Partition {
	t.Helper()
	all, err := p.List(t.Context())
	check.Require(t, err, "List")
	return all
}

// at is the change that creates a record of key in the state; the time of the key is that
// long ago.
func at(ago time.Duration, key string, state store.State, owner uint64) store.Change {
	c := create(key, state, owner)
	c.To.ID = store.NewTimedID("test", "scope", key, time.Now().Add(-ago))
	return c
}

// expired is c, with a record that may be purged.
func expired(c store.Change) store.Change {
	c.To.Expire = -time.Second
	return c
}

// place is the name of the partition that the record of c is in.
func place(t testing.TB, pool *pgxpool.Pool, c store.Change) string {
	t.Helper()
	return one[string](t, pool, `SELECT tableoid::regclass::text FROM semel_records WHERE id = $1::text::uuid`, c.To.ID.String())
}

// holding is the partition of a time that long ago.
func holding(t testing.TB, p *postgres.Partitions, ago time.Duration) postgres.Partition {
	t.Helper()
	when := time.Now().Add(-ago)
	for _, one := range list(t, p) {
		if !one.From.After(when) && one.To.After(when) {
			return one
		}
	}
	t.Fatalf("there is no partition for %v", when)
	return postgres.Partition{}
}

// names are the names of partitions.
func names(all []postgres.Partition) []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// spread divides the table by IDs without a time, too, so that what is written
// without one goes to many partitions.
func spread(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	divided(t, pool, postgres.PartitionOptions{})
	mustExec(t, pool, `ALTER TABLE semel_records DETACH PARTITION semel_records_first`)
	mustExec(t, pool, `DROP TABLE semel_records_first`)
	for i := range 4 {
		name := fmt.Sprintf("semel_records_of_%d", i)
		mustExec(t, pool, `CREATE TABLE `+name+` (LIKE semel_records INCLUDING ALL)`)
		from, to := fmt.Sprintf("'%x0000000-0000-0000-0000-000000000000'", 2*i), fmt.Sprintf("'%x0000000-0000-0000-0000-000000000000'", 2*i+2)
		if i == 0 {
			from = "MINVALUE"
		}
		mustExec(t, pool, fmt.Sprintf(`ALTER TABLE semel_records ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)`, name, from, to))
	}
}

// addressOf is the host and port of a database.
func addressOf(c *pgx.ConnConfig) string {
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}
