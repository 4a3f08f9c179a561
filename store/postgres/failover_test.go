package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// failoverRig is an engine on a quorum, whose clients follow a failover.
type failoverRig struct {
	*realtest.Quorum

	url     string // of the database, on all servers
	options semel.Options
	engine  *semel.Engine[pgx.Tx]
	inline  *semel.Operation[string]
	leased  *semel.Operation[string]
	runs    sync.Map // number of runs by key of the leased operation
}

func newFailoverRig(t *testing.T, o semel.Options) *failoverRig {
	t.Helper()
	q := realtest.PostgresQuorum(t)
	r := &failoverRig{
		Quorum: q, url: q.URL(t, migrated(t, q.Primary())), options: o,
		inline: semel.Define("inline", semel.OperationOptions[string]{}),
		leased: semel.Define("leased", semel.OperationOptions[string]{}),
	}
	r.options.Survive = store.Failover
	r.engine = r.newEngine(t)
	return r
}

// newEngine is the engine of one more process.
func (r *failoverRig) newEngine(t *testing.T) *semel.Engine[pgx.Tx] {
	t.Helper()
	s := newStore(t, connect(t, r.url, watched), postgres.Options{})
	s.SetCommitBound(time.Second)
	engine := check.Must(semel.New(s, r.options))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		check.NoError(t, engine.Close(ctx), "Close")
	})
	return engine
}

// doTx has one effect of key in a transaction.
func (r *failoverRig) doTx(ctx context.Context, e *semel.Engine[pgx.Tx], key string) (string, error) {
	v, _, err := semel.DoTx(ctx, e, r.inline.Call(semel.Shared(), key, key), func(ctx context.Context, tx pgx.Tx) (string, error) {
		return key, effect(ctx, tx, key)
	})
	return v, err
}

// do has an effect of key outside of the database.
func (r *failoverRig) do(ctx context.Context, e *semel.Engine[pgx.Tx], key string) (string, error) {
	v, _, err := semel.Do(ctx, e, r.leased.Call(semel.Shared(), key, key), func(context.Context) (string, error) {
		n, _ := r.runs.LoadOrStore(key, new(atomic.Int32))
		return fmt.Sprint(key, n.(*atomic.Int32).Add(1)), nil
	})
	return v, err
}

// TestFailoverUnderLoad kills the primary while callers use it, and promotes a standby.
// The callers follow. No answer is lost, and no key has a second effect. A slow failover, too,
// ends within RecordTimeout, after which a caller receives an outcome that is not
// recorded, and another process could see its key in doubt.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	r := newFailoverRig(t, semel.Options{RecordTimeout: time.Minute, Lease: time.Minute})
	const workers, before, after = 8, 200, 200
	var done atomic.Bool
	var answered atomic.Int32
	answers := make([]map[string]string, 2*workers)
	var all sync.WaitGroup
	for w := range answers {
		answers[w] = make(map[string]string)
		call := r.doTx
		if w >= workers {
			call = r.do
		}
		all.Go(func() {
			for i := 0; !done.Load(); i++ {
				key := fmt.Sprintf("%d-%d", w, i)
				value, err := untilFinal(t.Context(), func(ctx context.Context) (string, error) { return call(ctx, r.engine, key) })
				if err == nil {
					answers[w][key] = value
					answered.Add(1)
				} else if !errors.Is(err, semel.ErrInDoubt) {
					t.Errorf("key %s: %v", key, err)
				}
			}
		})
	}
	realtest.Poll(t, "answers", func() bool { return answered.Load() >= before })
	r.Failover(t)
	told := answered.Load()
	realtest.Poll(t, "answers of the new primary", func() bool { return answered.Load() >= told+after })
	done.Store(true)
	all.Wait()

	admin := connect(t, r.url)
	check.Equal(t, one[int](t, admin, `SELECT count(*) FROM (SELECT FROM effects GROUP BY key HAVING count(*) > 1) AS twice`), 0, "keys have had their effect twice")
	r.runs.Range(func(key, n any) bool {
		if n.(*atomic.Int32).Load() > 1 {
			t.Errorf("key %s ran twice", key)
		}
		return true
	})
	other := r.newEngine(t)
	for w, of := range answers {
		for key, want := range of {
			call := r.doTx
			if w >= workers {
				call = r.do
			}
			got, err := untilFinal(t.Context(), func(ctx context.Context) (string, error) { return call(ctx, other, key) })
			if err != nil || got != want {
				t.Fatalf("key %s was answered %q, and after the failover %q, %v", key, want, got, err)
			}
			if w < workers && effects(t, admin, key) != 1 {
				t.Fatalf("key %s was answered, and has no effect after the failover", key)
			}
		}
	}
}

// untilFinal retries a call as a caller should.
func untilFinal(ctx context.Context, call func(ctx context.Context) (string, error)) (value string, err error) {
	ended := realtest.Retry(ctx, func() bool {
		once, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		value, err = call(once)
		return err == nil || errors.Is(err, semel.ErrInDoubt)
	})
	return value, errors.Join(err, ended)
}

// TestNoAnswerWithoutStandbys: while no standby confirms, callers get no result, neither
// the one that runs nor one that retries in another process. A failover may then keep
// the effect or not: a retry has the same answer as everyone, and there is one effect.
func TestNoAnswerWithoutStandbys(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	r := newFailoverRig(t, semel.Options{RecordTimeout: 2 * time.Second, Lease: 5 * time.Second})
	other := r.newEngine(t)
	check.Must(r.doTx(t.Context(), r.engine, "before"))(t)
	restore := sync.OnceFunc(r.Isolate())
	t.Cleanup(restore)
	var all sync.WaitGroup
	for _, e := range []*semel.Engine[pgx.Tx]{r.engine, other} {
		for name, call := range map[string]func(context.Context, *semel.Engine[pgx.Tx], string) (string, error){"inline": r.doTx, "leased": r.do} {
			all.Go(func() {
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					value, err := call(ctx, e, name)
					cancel()
					if verdict := semel.VerdictOf(err); err == nil || verdict == store.Committed {
						t.Errorf("%s without standbys = %q, %v (%v), want no result", name, value, err, verdict)
					}
				}
			})
		}
	}
	all.Wait()
	r.Primary().Kill()
	restore()
	r.Promote(t)
	check.Result(untilFinal(t.Context(), func(ctx context.Context) (string, error) { return r.doTx(ctx, other, "inline") }))(t, "inline", "after the failover")
	admin := connect(t, r.url)
	for _, key := range []string{"before", "inline"} {
		check.Equal(t, effects(t, admin, key), 1, "after the failover key %s: effects", key)
	}
	if n, ran := r.runs.Load("leased"); ran && n.(*atomic.Int32).Load() > 1 {
		t.Errorf("the leased operation ran %d times", n.(*atomic.Int32).Load())
	}
}
