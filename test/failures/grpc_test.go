package failures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
		"Cookies":           grpcMetadata[Tx],
		"Trailers":          grpcMetadata[Tx],
		"OtherUsers":        grpcOtherUsers[Tx],
		"CopiedBody":        grpcLargeReply[Tx],
		"EmptyAnswer":       grpcEmptyReply[Tx],
		"Head":              grpcUnprotectedMethod[Tx],
		"HTTP2":             grpcStreams[Tx],
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
	return callGRPC(t.Context(), conn, grpcProtected, "ann", key), callGRPC(t.Context(), conn, grpcProtected, "ann", key)
}

// A response that cannot be encoded reaches no client, so it is no success. In a transaction
// it is rolled back; elsewhere the effect stays, and is in doubt.
func grpcUnmarshalable[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	text := "\xff" // no string of protobuf
	conn := w.serveMode(t, by, func(_ context.Context, effect func() error) (string, error) { return text, effect() })
	if first := callGRPC(t.Context(), conn, grpcProtected, "ann", "k"); first.err == nil {
		t.Error("the first client got a response")
	}
	text = "made"
	second := callGRPC(t.Context(), conn, grpcProtected, "ann", "k")
	if by == outside {
		check.Equal(t, second.reason(), "IN_DOUBT", "the repeat: %v", second.err)
	} else {
		check.NoError(t, second.err, "the repeat")
	}
	w.wantEffects(t, "ann/k", 1)
}

// Metadata of a response is sent to its first client only, in the header and in the trailer.
func grpcMetadata[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	conn := w.serveMode(t, by, func(ctx context.Context, effect func() error) (string, error) {
		err := errors.Join(grpc.SetHeader(ctx, metadata.Pairs("session", "secret")), grpc.SetTrailer(ctx, metadata.Pairs("sum", "42")), effect())
		return "made", err
	})
	first, second := callGRPCTwice(t, conn, "k")
	check.NoError(t, first.err, "the first client")
	second.wantReplay(t, first)
	for name, of := range map[string]func(reply) metadata.MD{
		"session": func(r reply) metadata.MD { return r.header }, "sum": func(r reply) metadata.MD { return r.trailer },
	} {
		if len(of(first).Get(name)) != 1 || len(of(second).Get(name)) != 0 {
			t.Errorf("%s is %v, then %v, want it for the first client only", name, of(first).Get(name), of(second).Get(name))
		}
	}
	w.wantEffects(t, "ann/k", 1)
}

func grpcOtherUsers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	conn := w.serveMode(t, by, func(ctx context.Context, effect func() error) (string, error) { return "for " + grpcKey(ctx), effect() })
	for _, user := range []string{"ann", "ann:k", "mallory"} {
		if r := callGRPC(t.Context(), conn, grpcProtected, user, "k"); r.replayed || r.value != "for "+user+"/k" {
			t.Errorf("%s got %q, %v, replayed %v", user, r.value, r.err, r.replayed)
		}
		w.wantEffects(t, user+"/k", 1)
	}
}

// A response that takes many frames is stored completely.
func grpcLargeReply[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	large := strings.Repeat("large ", 50_000)
	conn := w.serveMode(t, by, func(_ context.Context, effect func() error) (string, error) { return large, effect() })
	first, second := callGRPCTwice(t, conn, "k")
	check.Equal(t, first.value == large, true, "the first client got %d bytes, %v", len(first.value), first.err)
	second.wantReplay(t, first)
	w.wantEffects(t, "ann/k", 1)
}

// A response without a field is replayed too.
func grpcEmptyReply[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	conn := w.serveMode(t, by, func(_ context.Context, effect func() error) (string, error) { return "", effect() })
	first, second := callGRPCTwice(t, conn, "k")
	check.NoError(t, first.err, "the first client")
	second.wantReplay(t, first)
	w.wantEffects(t, "ann/k", 1)
}

// A method that is not protected reaches its handler each time and uses no key.
func grpcUnprotectedMethod[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	n := 0
	conn := w.serveGRPC(t, w.runner, by, w.grpcOperation(by), func(context.Context, any) (any, error) { n++; return wrapperspb.String("read"), nil })
	for range 2 {
		r := callGRPC(t.Context(), conn, grpcUnprotected, "ann", "k")
		check.Equal(t, r.value, "read", "the reply, with %v", r.err)
		check.Equal(t, r.replayed, false, "replayed")
	}
	check.Equal(t, n, 2, "the handler was reached")
}

// Many streams of one connection have one effect.
func grpcStreams[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	conn := w.serveMode(t, by, makes, grpcRetries(t))
	replies := make(chan reply, 8)
	for range cap(replies) {
		go func() { replies <- callGRPC(t.Context(), conn, grpcProtected, "ann", "k") }()
	}
	firsts := 0
	for range cap(replies) {
		r := <-replies
		check.Equal(t, r.value, "made", "a stream got %v", r.err)
		if !r.replayed {
			firsts++
		}
	}
	check.Equal(t, firsts, 1, "streams got a first reply")
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
	o.Lease, o.Heartbeat, o.Wait = w.Lease/2, w.Lease/10, time.Minute
	if by == outside {
		o.Policy = semel.AtLeastOnce()
	}
	entered, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	stalls := func(context.Context, func() error) (string, error) { close(entered); <-released; return "zombie", nil }
	wins := func(_ context.Context, effect func() error) (string, error) { return "winner", effect() }
	first := w.serveGRPC(t, w.runner, by, o, w.inMode(w.runner, by, stalls))
	other := w.another(t)
	second := w.serveGRPC(t, other, by, o, w.inMode(other, by, wins))
	late := make(chan reply)
	go func() { late <- callGRPC(t.Context(), first, grpcProtected, "ann", "k") }()
	select {
	case <-entered:
	case r := <-late:
		t.Fatalf("the zombie-to-be did not run: %v", r.err)
	}
	w.swaps.refuse(rejectHeartbeats) // no heartbeat reaches the store
	defer w.swaps.refuse(nil)
	won := callGRPC(t.Context(), second, grpcProtected, "ann", "k")
	check.Equal(t, won.value, "winner", "the winner's reply, with %v", won.err)
	w.swaps.refuse(nil)
	release()
	(<-late).wantReplay(t, won)
	w.wantEffects(t, "ann/k", 1)
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
			clients.Go(func() { check.NoError(t, callGRPC(ctx, conn, grpcProtected, "ann", key).err, "%s", key) })
		}
		clients.Wait()
		w.wantEffects(t, "ann/"+key, 1)
	}
	stop()
	sweepers.Wait()
}
