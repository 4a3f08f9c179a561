//go:build unix

package server_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// TestNoSweeper kills the leader of an operation under each policy, and retries its
// key after the lease has expired. No sweeper runs: the retry itself settles the
// record as the policy says, and other keys are not affected.
// TestKilledAtEveryPoint tests the chat's own operations.
func TestNoSweeper(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	tests := []struct {
		policy, dies string
		want         error // nil: a result
		effects      int
	}{
		{"hold", "before", semel.ErrInDoubt, 0},
		{"hold", "after", semel.ErrInDoubt, 1},
		{"heal", "before", semel.ErrInDoubt, 0},
		{"heal", "after", nil, 1},
		{"fenced", "before", nil, 1},
		{"fenced", "after", nil, 1},
		{"keyed", "before", nil, 1},
		{"keyed", "after", nil, 1},
		{"at-least-once", "before", nil, 1},
		{"at-least-once", "after", nil, 2},
	}
	for _, test := range tests {
		t.Run(test.policy+"/"+test.dies+" the effect", func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := &process{Process: realtest.StartProcess(t, child(t, "attempt", test.policy, dir, "key", test.dies))}
			p.killedAt(t, test.dies)
			r, err := openReceiver(dir, test.policy)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.close)
			if _, err := r.run(t.Context(), "other", nil); err != nil {
				t.Errorf("another key: %v", err)
			}
			got, err := r.untilSettled(t.Context(), "key")
			if !errors.Is(err, test.want) {
				t.Errorf("asked again after the lease: %q, %v; want %v", got, err, test.want)
			}
			if n := r.count(t, "key"); n != test.effects {
				t.Errorf("%d effects, want %d", n, test.effects)
			}
			if again, aerr := r.untilSettled(t.Context(), "key"); again != got || !errors.Is(aerr, test.want) {
				t.Errorf("and again: %q, %v; want %q", again, aerr, got)
			}
		})
	}
}

// attemptChild runs one operation and kills itself at a given point.
func attemptChild() int {
	policy, dir, key, dies := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	r, err := openReceiver(dir, policy)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.close()
	_, err = r.run(context.Background(), key, func(point string) {
		if point == dies {
			report("reached " + point)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	fmt.Fprintln(os.Stderr, "not killed:", err)
	return 1
}

// receiver is the receiver of the effects, with a database of its own, and the
// engine of its callers.
type receiver struct {
	effects, records *sql.DB
	engine           *semel.Engine[*sql.Tx]
	operation        *semel.Operation[string]
}

const receiverSchema = `
create table if not exists effects (key text not null, child text);
create unique index if not exists once on effects (child);
create table if not exists fence (key text primary key, attempt integer not null);`

func openReceiver(dir, policy string) (*receiver, error) {
	r := &receiver{}
	var err error
	if r.effects, err = sqlite.Open(filepath.Join(dir, "effects.db")); err != nil {
		return nil, err
	}
	if _, err := r.effects.ExecContext(context.Background(), receiverSchema); err != nil {
		return nil, err
	}
	if r.records, err = sqlite.Open(filepath.Join(dir, "records.db")); err != nil {
		return nil, err
	}
	if err := sqlitemigrate.Up(context.Background(), r.records, sqlitemigrate.Options{}); err != nil {
		return nil, err
	}
	policies := map[string]semel.Policy{
		"hold": semel.Hold(), "heal": semel.Heal(r.look), "fenced": semel.Fenced(r.raise, r.look),
		"keyed": semel.Keyed(), "at-least-once": semel.AtLeastOnce(),
	}
	r.operation = semel.Define("act-"+policy, semel.OperationOptions[string]{Policy: policies[policy], Lease: shortLease})
	r.engine, err = semel.New(sqlite.New(r.records, sqlite.Options{}), semel.Options{RecordTimeout: patience})
	return r, err
}

func (r *receiver) close() {
	_ = r.engine.Close(context.Background())
	_ = r.effects.Close()
	_ = r.records.Close()
}

// run calls the operation once. It calls pass before and after the effect.
func (r *receiver) run(ctx context.Context, key string, pass func(point string)) (string, error) {
	if pass == nil {
		pass = func(string) {}
	}
	call := r.operation.Call(semel.ScopeOf("somebody"), key, "in")
	got, _, err := semel.Do(ctx, r.engine, call, func(ctx context.Context) (string, error) {
		pass("before")
		a, _ := semel.AttemptOf(ctx)
		if err := r.act(ctx, a, key); err != nil {
			return "", err
		}
		pass("after")
		return "done", nil
	})
	return got, err
}

// act is the effect. The receiver deduplicates by child key, if there is one, and
// rejects attempts below the fence. Like a remote effect, it does not end with the
// caller's context.
func (r *receiver) act(ctx context.Context, a *semel.Attempt, key string) error {
	ctx = context.WithoutCancel(ctx)
	var child sql.NullString
	if r.operation.Name() == "act-keyed" {
		child = sql.NullString{String: a.ChildKey("effect"), Valid: true}
	}
	_, err := r.effects.ExecContext(ctx, `
insert into effects (key, child) select ?1, ?2
where not exists (select 1 from fence where key = ?1 and attempt > ?3)
on conflict (child) do nothing`, key, child, int64(a.Number()))
	return err
}

func (r *receiver) raise(ctx context.Context, _ semel.Scope, key string, attempt uint32) error {
	_, err := r.effects.ExecContext(ctx,
		`insert into fence values (?, ?) on conflict (key) do update set attempt = max(attempt, excluded.attempt)`,
		key, int64(attempt))
	return err
}

func (r *receiver) look(ctx context.Context, _ semel.Scope, key string) (any, bool, error) {
	var n int
	err := r.effects.QueryRowContext(ctx, `select count(*) from effects where key = ?`, key).Scan(&n)
	return "done", n > 0, err
}

// untilSettled retries while the answer is ErrInProgress.
func (r *receiver) untilSettled(ctx context.Context, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var got string
	var err error
	_ = realtest.Retry(ctx, func() bool { // err says more
		got, err = r.run(ctx, key, nil)
		return !errors.Is(err, semel.ErrInProgress)
	})
	return got, err
}

func (r *receiver) count(t *testing.T, key string) int {
	t.Helper()
	var n int
	if err := r.effects.QueryRowContext(t.Context(), `select count(*) from effects where key = ?`, key).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
