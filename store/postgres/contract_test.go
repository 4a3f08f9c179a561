package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	url := database(t)
	run(t, url, url, postgres.Options{}, nil)
}

func TestContractBehindPgBouncer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "pgbouncer")
	url := database(t)
	run(t, url, realtest.PgBouncer(t, url), postgres.Options{}, storetest.CallParts(), mode(pgx.QueryExecModeExec))
}

// run runs the suite, or some parts of it, on stores of the database at url, by connections
// to address through a proxy that loses replies.
func run(t *testing.T, url, address string, o postgres.Options, parts []string, change ...func(*pgxpool.Config)) {
	t.Helper()
	config := check.Must(pgx.ParseConfig(address))(t)
	proxy := realtest.NewProxy(t, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
	direct, through := connect(t, url), connect(t, proxy.URL(address), change...)
	storetest.Run(t, func(t testing.TB) storetest.Subject[pgx.Tx] {
		s := subjectOf(t, direct, newStore(t, through, o), o)
		s.Begin = beginAt(through)
		s.Lose = func() func() bool {
			fault := proxy.EatReply(durable)
			return func() bool { return !fault.Disarm() }
		}
		return s
	}, parts...)
}

// subjectOf is the subject of a store whose database direct leads to. It empties the tables:
// the suite needs hundreds of stores, and that is quicker than new databases.
func subjectOf(t testing.TB, direct *pgxpool.Pool, s *postgres.Store, o postgres.Options) storetest.Subject[pgx.Tx] {
	t.Helper()
	mustExec(t, direct, fmt.Sprintf(`TRUNCATE %[1]srecords, %[1]snotes, effects`, prefixOf(o)))
	return storetest.Subject[pgx.Tx]{
		Store:   s,
		Effect:  func(ctx context.Context, tx pgx.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, direct, key) },
		Batches: storetest.BatchesOf(s, batchOf),
	}
}

// beginAt begins transactions of the program at each isolation level.
func beginAt(pool *pgxpool.Pool) map[string]storetest.BeginFunc[pgx.Tx] {
	levels := make(map[string]storetest.BeginFunc[pgx.Tx])
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		levels[string(level)] = func(ctx context.Context) (pgx.Tx, func() error, func() error, error) {
			tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
			return tx, func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }, err
		}
	}
	return levels
}

// prefixOf returns the beginning of the tables' names for a statement.
func prefixOf(o postgres.Options) string {
	prefix := cmp.Or(o.Prefix, "semel_")
	if o.Schema != "" {
		prefix = o.Schema + "." + prefix
	}
	return prefix
}

// batchOf has an effect in each statement, or fails.
func batchOf(all []storetest.Statement) *pgx.Batch {
	b := &pgx.Batch{}
	for _, s := range all {
		if s.Fails {
			b.Queue(`SELECT 1 / (SELECT 0)`)
		} else {
			b.Queue(`INSERT INTO effects (key) VALUES ($1)`, s.Effect)
		}
	}
	return b
}

// writes matches a statement that writes to the tables.
var writes = regexp.MustCompile(`(INTO|UPDATE|DELETE FROM) ("?public"?\."?semel_|"?app"?\."?once_)`)

// durable matches a request that, when it is answered, has made something of the
// records durable: a commit, or a write outside a transaction.
func durable(request []byte) bool {
	if realtest.Commit()(request) {
		return true
	}
	return writes.Match(request) && !bytes.Contains(request, []byte(`SAVEPOINT`))
}

// TestContractOnAQuorum makes every kind of call on a primary with two standbys, of which a
// commit needs one, and disconnects them.
func TestContractOnAQuorum(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	storetest.Run(t, quorumSubjects(t), storetest.CallParts()...)
}

// quorumSubjects returns subjects with replicas that can be disconnected. Meanwhile the
// store's own bounds are shorter, because each call waits as long as they are.
func quorumSubjects(t *testing.T) func(testing.TB) storetest.Subject[pgx.Tx] {
	t.Helper()
	q := realtest.PostgresQuorum(t)
	pool := connect(t, migrated(t, q.Primary()), watched)
	return func(t testing.TB) storetest.Subject[pgx.Tx] {
		s := newStore(t, pool, postgres.Options{})
		sub := subjectOf(t, pool, s, postgres.Options{})
		sub.Isolate = func() func() {
			s.SetCommitBound(time.Second)
			s.SetStatementBound(time.Second)
			return sync.OnceFunc(q.Isolate())
		}
		return sub
	}
}

// watched lets the pool's connections report cancelled waits.
func watched(c *pgxpool.Config) { postgres.WatchReplication(c.ConnConfig) }
