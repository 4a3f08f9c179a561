package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// benchBatches are batches of a lone caller, of a few, and of a crowd.
func benchBatches() []int { return []int{1, 2, 4, 8, 16, 32, 128} }

// BenchmarkSwap claims and completes records by batches of either kind and of both.
// An operation is one record.
func BenchmarkSwap(b *testing.B) {
	for _, n := range benchBatches() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pool := connect(b, database(b))
			s := newStore(b, pool, postgres.Options{})
			var claimed []store.Change
			swap := func(fresh int) {
				changes := make([]store.Change, 0, 2*n)
				for _, c := range claimed {
					changes = append(changes, complete(c))
				}
				claimed = claimed[:0]
				for range fresh {
					claimed = append(claimed, claim())
				}
				changes = append(changes, claimed...)
				for i, answer := range must(s.Swap(b.Context(), changes))(b) {
					if !answer.Applied(changes[i]) {
						b.Fatalf("%+v, want it applied", answer)
					}
				}
			}
			warm(b, pool, func() {
				swap((n + 1) / 2)
				swap(0)
			})
			for left := b.N; left > 0 || len(claimed) > 0; {
				fresh := min(left, (n+1)/2) // with what was claimed before, n changes
				swap(fresh)
				left -= fresh
			}
		})
	}
}

// BenchmarkPlain is the same work by plain statements: two, or one.
func BenchmarkPlain(b *testing.B) {
	for _, name := range []string{"naive", "bare"} {
		b.Run(name, func(b *testing.B) {
			pool := connect(b, database(b))
			mustExec(b, pool, `CREATE TABLE naive (key text PRIMARY KEY, state smallint, result bytea, created timestamptz, expires timestamptz)`)
			run := func() {
				c := claim()
				key := c.To.Scope + ":" + c.To.Key
				if name == "bare" {
					mustExec(b, pool, `INSERT INTO naive VALUES ($1, 1, $2, now(), now() + interval '1 day')`, key, result())
					return
				}
				mustExec(b, pool, `INSERT INTO naive VALUES ($1, 0, NULL, now(), NULL) ON CONFLICT DO NOTHING`, key)
				mustExec(b, pool, `UPDATE naive SET state = 1, result = $2, expires = now() + interval '1 day' WHERE key = $1`, key, result())
			}
			warm(b, pool, run)
			for range b.N {
				run()
			}
		})
	}
}

// BenchmarkGet reads final records. An operation is one of them.
func BenchmarkGet(b *testing.B) {
	for _, n := range benchBatches() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pool := connect(b, database(b))
			s := newStore(b, pool, postgres.Options{})
			ids := make([]store.ID, 1000)
			changes := make([]store.Change, len(ids))
			for i := range ids {
				c := claim()
				c.To = complete(c).To
				changes[i], ids[i] = c, c.To.ID
			}
			must(s.Swap(b.Context(), changes))(b)
			read := func() {
				from := rand.IntN(len(ids) - n + 1)
				if got := must(s.Get(b.Context(), ids[from:from+n]))(b); got[0].Record == nil {
					b.Fatal("there is no record")
				}
			}
			warm(b, pool, read)
			for left := b.N; left > 0; left -= n {
				read()
			}
		})
	}
}

// must fails the benchmark if there is an error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check.Require(t, err)
		return value
	}
}

// claim is a leader's change of a new key, of the size that many have.
func claim() store.Change {
	key := newKey()
	const operation, scope = "create_payment", "7:user-42"
	return store.Change{To: store.Record{
		ID:    store.NewID(operation, scope, key),
		Token: store.Token{State: store.InProgress, Attempt: 1, Owner: rand.Uint64()},
		Due:   30 * time.Second, Operation: operation, Scope: scope, Key: key, Fingerprint: make([]byte, 18),
	}}
}

// complete ends the attempt of c.
func complete(c store.Change) store.Change {
	to := c.To
	to.State, to.Due, to.Expire, to.Outcome = store.Succeeded, 0, 24*time.Hour, result()
	return store.Change{If: c.To.Token, To: to}
}

func newKey() string {
	a, b := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&(1<<48-1))
}

func result() []byte { return make([]byte, 256) }

// warm runs the statements until they are planned for good, and begins to measure.
func warm(b *testing.B, pool *pgxpool.Pool, run func()) {
	b.Helper()
	for range 20 {
		run()
	}
	before, known := serverTime(b, pool)
	own := ownTime()
	b.ReportAllocs()
	b.ResetTimer()
	b.Cleanup(func() {
		b.StopTimer()
		if after, _ := serverTime(b, pool); known {
			b.ReportMetric(float64(after-before)/float64(b.N), "server-ns/op")
			b.ReportMetric(float64(ownTime()-own)/float64(b.N), "own-ns/op")
		}
	})
}

// serverTime is the processor time of the pool's connections on the server; false if it is
// not known, because the server is on another machine or the system is not Linux.
func serverTime(b *testing.B, pool *pgxpool.Pool) (time.Duration, bool) {
	b.Helper()
	rows := check.Must(pool.Query(context.WithoutCancel(b.Context()), `SELECT pid FROM pg_stat_activity WHERE datname = current_database()`))(b)
	pids := check.Must(pgx.CollectRows(rows, pgx.RowTo[int32]))(b)
	var all time.Duration
	for _, pid := range pids {
		one, ok := timeOf(fmt.Sprintf("/proc/%d/schedstat", pid))
		if !ok {
			return 0, false
		}
		all += one
	}
	return all, true
}

// timeOf reads what the kernel keeps of a process, in nanoseconds.
func timeOf(file string) (time.Duration, bool) {
	text, err := os.ReadFile(file)
	fields := bytes.Fields(text)
	if err != nil || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return time.Duration(n), err == nil
}

// ownTime is the processor time of this process, or zero if it is not known.
func ownTime() time.Duration {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	var all time.Duration
	for _, task := range tasks {
		one, _ := timeOf("/proc/self/task/" + task.Name() + "/schedstat")
		all += one
	}
	return all
}
