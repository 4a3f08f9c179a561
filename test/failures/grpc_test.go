package failures_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestGRPC runs each class of failure through a gRPC server and client, with -short on one
// store.
func TestGRPC(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "postgres")
		url := realtest.Postgres(t).Database(t)
		grpcClasses(t, inPostgres(t, url, url))
	})
	if testing.Short() {
		return
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		grpcClasses(t, onSubject(ledger.Memory(memory.Options{}), 500*time.Millisecond))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "sqlite")
		grpcClasses(t, onSubject(ledger.SQLite(t), 500*time.Millisecond))
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "mysql")
		name := realtest.MariaDB(t).Database(t)
		grpcClasses(t, onSubject(ledger.MariaDB(t, name, name), 2*time.Second))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "redis")
		grpcClasses(t, outsideOf(servers.Redis(t).Store(t)))
	})
}

// grpcClasses runs on h what each class is through gRPC.
func grpcClasses[Tx any](t *testing.T, h database[Tx]) {
	t.Helper()
	through := map[string]func(t *testing.T, w *fixture[Tx], by handlerMode){
		"Unmarshalable":     grpcUnmarshalable[Tx],
		"Zombie":            grpcLateLeader[Tx],
		"SweepAgainstClaim": grpcSweepers[Tx],
		"EqualAnswers":      grpcEqualAnswers[Tx],
		"WithoutInTx":       grpcWithoutInTx[Tx],
		"StoredRetention":   grpcStoredRetention[Tx],
		"InnerMarks":        grpcInnerMarks[Tx],
	}
	for _, c := range all[Tx]() {
		run := through[c.name]
		if run == nil {
			t.Errorf("the class %s does not run through gRPC", c.name)
			continue
		}
		if c.inTx && h.outside != nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, by := range h.modes() {
				t.Run(string(by), func(t *testing.T) {
					t.Parallel()
					run(t, newFixture(t, h, "grpc-"+c.name+"-"+string(by)), by)
				})
			}
		})
	}
}

// makes has its effect and replies "made".
func makes(_ context.Context, effect func() error) (string, error) { return "made", effect() }

// callGRPCTwice sends a key two times and returns both replies.
func callGRPCTwice(t *testing.T, conn *grpc.ClientConn, key string) (first, second reply) {
	t.Helper()
	return callGRPC(t.Context(), conn, key), callGRPC(t.Context(), conn, key)
}

// A response that cannot be encoded reaches no client, so it is no success. In a transaction
// it is rolled back; elsewhere the effect stays, and is in doubt.
func grpcUnmarshalable[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	text := "\xff" // no string of protobuf
	conn := w.serveMode(t, by, func(_ context.Context, effect func() error) (string, error) { return text, effect() })
	if first := callGRPC(t.Context(), conn, "k"); first.err == nil {
		t.Error("the first client got a response")
	}
	text = "made"
	second := callGRPC(t.Context(), conn, "k")
	if by == outside {
		check.Equal(t, second.reason(), "IN_DOUBT", "the repeat: %v", second.err)
	} else {
		check.NoError(t, second.err, "the repeat")
	}
	w.wantEffects(t, "ann/k", 1)
}

// A server whose call is taken over by another server replies with what the winner has
// stored, and its own transaction rolls back.
func grpcLateLeader[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	if by == inline {
		t.Skip("an inline attempt has no lease: its transaction is its right to run")
	}
	if caps, err := w.records().Capabilities(t.Context()); err != nil || caps.Exclusion == store.ExcludesAll {
		t.Skipf("an open transaction blocks all other writers of this store, so that the test cannot take over while it is open (error: %v)", err)
	}
	o := w.grpcOperation(by)
	o.Wait = time.Minute
	if by == outside {
		o.Policy = semel.AtLeastOnce()
	}
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	key, late := stalledLeader(t, w.Lease/2, "k", func(key string, lease time.Duration, enter func()) func() (reply, error) {
		o.Lease, o.Heartbeat = lease, lease/5
		stalls := func(context.Context, func() error) (string, error) { enter(); <-released; return "zombie", nil }
		first := w.serveGRPC(t, w.runner, by, o, w.inMode(w.runner, by, stalls))
		return func() (reply, error) {
			r := callGRPC(t.Context(), first, key)
			return r, r.err
		}
	})
	o.Lease, o.Heartbeat = longLease, longLease/5
	other := w.another(t)
	wins := func(_ context.Context, effect func() error) (string, error) { return "winner", effect() }
	second := w.serveGRPC(t, other, by, o, w.inMode(other, by, wins))
	w.faults.Decide(rejectHeartbeats) // no heartbeat reaches the store
	defer w.faults.Decide(nil)
	won := callGRPC(t.Context(), second, key)
	check.Equal(t, won.value, "winner", "the winner's reply, with %v", won.err)
	w.faults.Decide(nil)
	release()
	(<-late).wantReplay(t, won)
	w.wantEffects(t, "ann/"+key, 1)
}

// Sweepers, purgers and clients at one key agree on one effect.
func grpcSweepers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	conn := w.serveMode(t, by, makes, grpcRetries(t))
	ctx, stop := context.WithCancel(t.Context())
	var sweepers, clients sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for ctx.Err() == nil {
				_, _ = admin.Sweep(ctx, w.runner, 100) // the database may be busy, which clients must not notice
				_, _ = admin.Purge(ctx, w.runner, 100)
			}
		})
	}
	for i := range 6 {
		key := fmt.Sprint("k", i)
		for range 2 {
			clients.Go(func() { check.NoError(t, callGRPC(ctx, conn, key).err, "%s", key) })
		}
		clients.Wait()
		w.wantEffects(t, "ann/"+key, 1)
	}
	stop()
	sweepers.Wait()
}
