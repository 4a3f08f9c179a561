//go:build unix

package semelgrpc_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/semelgrpc"
)

// servers are two server processes on one database.
type servers struct {
	effects   *pgxpool.Pool
	processes [2]*realtest.Process
	addresses [2]string
}

// everyWay runs a test with two servers for each way; first is the lease of the first of them. With -short
// it runs DoTx only.
func everyWay(t *testing.T, ways []string, first time.Duration, test func(t *testing.T, way string, s *servers)) {
	if testing.Short() {
		ways = ways[:1]
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, way, startServers(t, way, first))
		})
	}
}

func startServers(t *testing.T, way string, first time.Duration) *servers {
	t.Helper()
	t.Attr("engine", "postgres")
	c := child{Database: realtest.Postgres(t).Database(t), Way: way}
	s := &servers{effects: ledger.Pool(t, c.Database)}
	check.Require(t, pgmigrate.Up(t.Context(), s.effects, pgmigrate.Options{}))
	check.Must(s.effects.Exec(t.Context(), `create table effects (run bigint)`))(t)
	for i, of := range [2]time.Duration{first, longLease} {
		c.Lease = of
		config := check.Must(json.Marshal(c))(t)
		s.processes[i] = realtest.StartProcess(t, realtest.Self(t, childVariable+"="+string(config)))
		s.addresses[i] = strings.TrimPrefix(s.processes[i].Await(t, "serving "), "serving ")
	}
	return s
}

// dial returns a connection to the first of the servers that accepts it.
func (s *servers) dial(t *testing.T, servers []int, client ...grpc.UnaryClientInterceptor) *grpc.ClientConn {
	t.Helper()
	return dial(t, func(ctx context.Context, _ string) (conn net.Conn, err error) {
		for _, i := range servers {
			if conn, err = new(net.Dialer).DialContext(ctx, "tcp", s.addresses[i]); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}, client...)
}

// arm makes the first server do something at a point of the next call.
func (s *servers) arm(t *testing.T, act, point string) {
	t.Helper()
	s.processes[0].Command(t, act+" "+point)
	s.processes[0].Await(t, "armed")
}

// wantStored requires that both servers that live answer with the response of a run, that there is one
// effect, and that it is of this run.
func (s *servers) wantStored(t *testing.T, run int64, live ...int) {
	t.Helper()
	for _, i := range live {
		again, replayed, err := callOn(t.Context(), s.dial(t, []int{i}), "k", payment(5))
		if again != run || !replayed || err != nil {
			t.Errorf("server %d: run %d, replayed %t, %v, want the stored response of run %d", i, again, replayed, err, run)
		}
	}
	s.wantEffects(t, run)
}

func (s *servers) wantEffects(t *testing.T, run int64) {
	t.Helper()
	var n int
	var of int64
	check.Require(t, s.effects.QueryRow(t.Context(), `select count(*), coalesce(max(run), 0) from effects`).Scan(&n, &of))
	if n != 1 || run != 0 && of != run {
		t.Errorf("%d effects, the last of run %d, want one, of run %d", n, of, run)
	}
}

// TestServersAreKilled kills a server, with kill -9, at a point of a call. The client retries with the
// same key and reaches the other server.
func TestServersAreKilled(t *testing.T) {
	t.Parallel()
	points := []string{inHandler, beforeCall, beforeReply}
	if testing.Short() {
		points = points[:1]
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			first := longLease
			if point == inHandler { // the other server takes over when it has expired
				first = shortLease
			}
			everyWay(t, []string{inDoTx, inInTx, onHold}, first, func(t *testing.T, way string, s *servers) {
				s.arm(t, "kill", point)
				run, _, err := callOn(t.Context(), s.dial(t, []int{0, 1}, retrying(t, semelgrpc.ClientOptions{TryTimeout: 30 * time.Second})), "k", payment(5))
				s.processes[0].AwaitKilled(t)
				if way == onHold && point == inHandler { // the effect is outside of a transaction
					if status.Code(err) != codes.FailedPrecondition || reasonOf(err) != "IN_DOUBT" {
						t.Errorf("%v (%s), want an unknown outcome", err, reasonOf(err))
					}
					s.wantEffects(t, 0)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				s.wantStored(t, run, 1)
			})
		})
	}
}

// TestStoppedServersAreFenced stops a server in the transaction of a call, beyond the lease. The other
// server takes over; when the first one goes on, it must not have a second effect, nor another response.
func TestStoppedServersAreFenced(t *testing.T) {
	t.Parallel()
	everyWay(t, []string{inDoTx, inInTx}, shortLease, func(t *testing.T, _ string, s *servers) {
		s.arm(t, "hold", inHandler)
		type result struct {
			run int64
			err error
		}
		late := make(chan result, 1)
		conn := s.dial(t, []int{0}, retrying(t, semelgrpc.ClientOptions{TryTimeout: 30 * time.Second}))
		go func() {
			run, _, err := callOn(t.Context(), conn, "k", payment(5))
			late <- result{run, err}
		}()
		s.processes[0].Await(t, "reached "+inHandler)
		s.processes[0].Signal(t, syscall.SIGSTOP)
		run, replayed, err := callOn(t.Context(), s.dial(t, []int{1}), "k", payment(5))
		if err != nil || replayed {
			t.Errorf("the other server: replayed %t, %v, want a run of its own", replayed, err)
		}
		s.processes[0].Command(t, "proceed") // not before: SIGSTOP takes a moment
		s.processes[0].Signal(t, syscall.SIGCONT)
		if got := <-late; got.run != run || got.err != nil {
			t.Errorf("the stopped server: run %d, %v, want the response of run %d", got.run, got.err, run)
		}
		s.wantStored(t, run, 0, 1)
	})
}

// TestRepliesAreLost ends the client's connection when the call has committed and its reply is not sent.
func TestRepliesAreLost(t *testing.T) {
	t.Parallel()
	everyWay(t, []string{inDoTx, inInTx, onHold}, longLease, func(t *testing.T, _ string, s *servers) {
		s.arm(t, "hold", beforeReply)
		conn := s.dial(t, []int{0})
		lost := make(chan error, 1)
		go func() {
			_, _, err := callOn(t.Context(), conn, "k", payment(5))
			lost <- err
		}()
		s.processes[0].Await(t, "reached "+beforeReply)
		_ = conn.Close()
		if err := <-lost; err == nil {
			t.Error("the call has a reply")
		}
		run, replayed, err := callOn(t.Context(), s.dial(t, []int{1}), "k", payment(5))
		if !replayed || err != nil {
			t.Errorf("the retry: replayed %t, %v, want the stored response", replayed, err)
		}
		s.processes[0].Command(t, "proceed")
		s.wantStored(t, run, 0, 1)
	})
}
