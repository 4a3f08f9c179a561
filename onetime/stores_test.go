package onetime_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// storeCase is a store on which the tests run. A new store needs one more of them.
type storeCase struct {
	name  string
	quick bool // also in short tests
	open  func(t *testing.T) *rig
	// child is the configuration of a process over a new database, without its way. Nil:
	// the records do not survive the end of their process.
	child func(t *testing.T) child
}

func storeCases() []storeCase {
	return []storeCase{
		{"memory", true, func(t *testing.T) *rig { return txRig(t, ledger.Memory(memory.Options{})) }, nil},
		{"no transactions", true, func(t *testing.T) *rig { return plainRig(t, plainstore.New(plainstore.Options{})) }, nil},
		{"sqlite", true, func(t *testing.T) *rig {
			t.Attr("engine", "sqlite")
			return txRig(t, ledger.SQLite(t))
		}, func(t *testing.T) child {
			return child{Driver: "sqlite", Address: filepath.Join(t.TempDir(), "child.db")}
		}},
		{"postgres", true, func(t *testing.T) *rig {
			url := realtest.Postgres(t).Database(t)
			return txRig(t, ledger.Postgres(t, url, url, postgres.Options{}))
		}, func(t *testing.T) child { return child{Driver: "postgres", Address: realtest.Postgres(t).Database(t)} }},
		{"postgres, database/sql", false, func(t *testing.T) *rig {
			url := realtest.Postgres(t).Database(t)
			return txRig(t, ledger.PostgresSQL(t, url, url, postgres.Options{}))
		}, func(t *testing.T) child { return child{Driver: "pgx", Address: realtest.Postgres(t).Database(t)} }},
		{"mariadb", true, func(t *testing.T) *rig {
			name := realtest.MariaDB(t).Database(t)
			return txRig(t, ledger.MariaDB(t, name, name))
		}, func(t *testing.T) child { return child{Driver: "mariadb", Address: realtest.MariaDB(t).Database(t)} }},
		{"redis", true, func(t *testing.T) *rig {
			t.Attr("engine", "redis")
			return plainRig(t, servers.Redis(t).Store(t))
		}, func(t *testing.T) child { return recordsApart(t, servers.Redis(t)) }},
		{"etcd", true, func(t *testing.T) *rig {
			t.Attr("engine", "etcd")
			return plainRig(t, servers.Etcd(t).Store(t))
		}, func(t *testing.T) child { return recordsApart(t, servers.Etcd(t)) }},
	}
}

// recordsApart is a child whose effects are in a database, and whose records are not.
func recordsApart(t *testing.T, at servers.Place) child {
	t.Helper()
	return child{Driver: "sqlite", Address: filepath.Join(t.TempDir(), "child.db"), Records: at}
}

// order is the payload of the tests' tokens.
type order struct{ Name string }

// way is one way to use a token.
type way struct {
	name string
	// use runs an operation with one effect for the payload's name, which calls during
	// before its end. Its result is different in each run.
	use     func(ctx context.Context, e semel.Runner, subject, token string, during func(ctx context.Context) error) (string, bool, error)
	effects func(name string) int
}

// rig has two engines over one store, as two processes have.
type rig struct {
	engines [2]semel.Runner
	purpose *onetime.Purpose[order]
	ways    []way
}

// TestEveryStore runs each test on each store, in each way to use a token.
func TestEveryStore(t *testing.T) {
	t.Parallel()
	for _, c := range storeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !c.quick {
				t.Skip("make test-full runs it")
			}
			r := c.open(t)
			for i, w := range r.ways {
				for name, test := range map[string]func(*testing.T, *rig, way){
					"many submits": manySubmits, "other tokens are unknown": otherTokensAreUnknown, "expiry": expiry,
					"a token stays open after a refusal": tokenStaysOpenAfterARefusal, "open tokens are limited": openTokensAreLimited,
				} {
					t.Run(w.name+", "+name, func(t *testing.T) {
						t.Parallel()
						r, w := r, w
						if name == "expiry" { // keeps SQLite's only write lock for longer than others wait for it
							r = c.open(t)
							w = r.ways[i]
						}
						test(t, r, w)
					})
				}
			}
		})
	}
}

// engineOptions are those of an engine with the purpose. A slow machine does not end its calls.
func engineOptions(p *onetime.Purpose[order]) semel.Options {
	return semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute, Operations: []semel.Declared{p.Operation()}}
}

func txRig[Tx any](t *testing.T, s storetest.Subject[Tx]) *rig {
	t.Helper()
	r := &rig{purpose: onetime.Define[order]("place_order", onetime.Options{Wait: time.Minute})}
	for i := range r.engines {
		e := check.Must(semel.New(s.Store, engineOptions(r.purpose)))(t)
		closeAtEnd(t, e)
		r.engines[i] = e
	}
	r.ways = []way{consumeWay(r), {
		name: "ConsumeTx", effects: s.Effects,
		use: func(ctx context.Context, e semel.Runner, subject, token string, during func(context.Context) error) (string, bool, error) {
			return onetime.ConsumeTx(ctx, r.purpose, e.(*semel.Engine[Tx]), semel.ScopeOf(subject), token, func(ctx context.Context, tx Tx, o order) (string, error) {
				if err := s.Effect(ctx, tx, o.Name); err != nil {
					return "", err
				}
				return rand.Text(), during(ctx)
			})
		},
	}}
	return r
}

func plainRig(t *testing.T, s store.Store) *rig {
	t.Helper()
	r := &rig{purpose: onetime.Define[order]("place_order", onetime.Options{Wait: time.Minute})}
	for i := range r.engines {
		e := check.Must(semel.NewRunner(s, engineOptions(r.purpose)))(t)
		closeAtEnd(t, e)
		r.engines[i] = e
	}
	r.ways = []way{consumeWay(r)}
	return r
}

// consumeWay is the way without a transaction. Its effects are in this process.
func consumeWay(r *rig) way {
	var mu sync.Mutex
	effects := make(map[string]int)
	return way{
		name: "Consume",
		use: func(ctx context.Context, e semel.Runner, subject, token string, during func(context.Context) error) (string, bool, error) {
			return onetime.Consume(ctx, r.purpose, e, semel.ScopeOf(subject), token, func(ctx context.Context, o order) (string, error) {
				mu.Lock()
				effects[o.Name]++
				mu.Unlock()
				return rand.Text(), during(ctx)
			})
		},
		effects: func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			return effects[name]
		},
	}
}

func closeAtEnd(t *testing.T, e semel.Runner) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		check.NoError(t, e.Close(ctx), "Close")
	})
}

// issue returns a new token of a subject, with that payload.
func (r *rig) issue(t *testing.T, subject, name string, ttl time.Duration) string {
	t.Helper()
	token, err := r.purpose.Issue(t.Context(), r.engines[0], semel.ScopeOf(subject), ttl, order{Name: name})
	check.Require(t, err, "Issue")
	return token
}

func nothing(context.Context) error { return nil }
