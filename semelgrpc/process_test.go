//go:build unix

package semelgrpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelgrpc"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// childVariable tells the test binary to run as a server process, with its configuration.
const childVariable = "SEMEL_GRPC_CHILD"

// The ways in which a server process protects its method.
const (
	inDoTx = "DoTx"
	inInTx = "Do and InTx"
	onHold = "Do and Hold"
)

// The points at which a server process is disturbed.
const (
	beforeCall  = "before the call"
	inHandler   = "in the handler" // after its effect, before a commit
	beforeReply = "before the reply"
)

// A server process has shortLease if the test wants the other process to take over its calls. longLease does
// not end during a test, even on a slow machine.
const (
	shortLease = 500 * time.Millisecond
	longLease  = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if config := os.Getenv(childVariable); config != "" {
		os.Exit(runChild(config))
	}
	os.Exit(realtest.Main(m))
}

// child is a process that serves the method over TCP. Its records and effects are in PostgreSQL.
type child struct {
	Database string
	Way      string
	Lease    time.Duration
}

// runChild serves until the process is killed or the test has ended.
func runChild(config string) int {
	var c child
	err := json.Unmarshal([]byte(config), &c)
	if err == nil {
		err = c.serve(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (c child) serve(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, c.Database)
	if err != nil {
		return err
	}
	s, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return err
	}
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure})
	if err != nil {
		return err
	}
	p := &disturbance{proceed: make(chan struct{})}
	protect, handle := c.protect(engine, pool, p)
	interceptor, err := semelgrpc.UnaryServerInterceptor(semelgrpc.ServerOptions{
		Methods: map[string]semelgrpc.Method{method: protect}, ScopeFunc: scopeOf,
	})
	if err != nil {
		return err
	}
	outer := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		p.reached(beforeCall)
		defer p.reached(beforeReply)
		return next(ctx, req)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := newServer(grpc.ChainUnaryInterceptor(outer, interceptor), handle)
	go func() {
		p.read()
		server.Stop()
	}()
	fmt.Println("serving", listener.Addr())
	return server.Serve(listener)
}

// protect returns the protection of the method, and its handler, which inserts a row.
func (c child) protect(e *semel.Engine[pgx.Tx], pool *pgxpool.Pool, p *disturbance) (semelgrpc.Method, func(context.Context, message) (any, error)) {
	o := semel.OperationOptions[semelgrpc.Request[message]]{Policy: semel.Atomic(), Lease: c.Lease, Wait: time.Minute}
	const insert = `insert into effects values ($1)`
	within := func(ctx context.Context, tx pgx.Tx) (any, error) {
		run := rand.Int64()
		_, err := tx.Exec(ctx, insert, run)
		p.reached(inHandler)
		return answer(run), err
	}
	switch c.Way {
	case inDoTx:
		return semelgrpc.DoTx(e, semel.Define("pay", o)), func(ctx context.Context, _ message) (any, error) {
			tx, ok := semel.TxOf(ctx, e)
			if !ok {
				return nil, errors.New("there is no transaction")
			}
			return within(ctx, tx)
		}
	case inInTx:
		return semelgrpc.Do(e, semel.Define("pay", o)), func(ctx context.Context, _ message) (any, error) {
			return semel.InTx(ctx, e, within)
		}
	default:
		o.Policy = semel.Hold()
		return semelgrpc.Do(e, semel.Define("pay", o)), func(ctx context.Context, _ message) (any, error) {
			run := rand.Int64()
			_, err := pool.Exec(context.WithoutCancel(ctx), insert, run) // the effect comes, even if a slow machine has lost the lease
			p.reached(inHandler)
			return answer(run), err
		}
	}
}

// disturbance is what the test has asked for with a line: "kill" or "hold", and a point.
type disturbance struct {
	mu      sync.Mutex
	act, at string        // guarded by mu
	proceed chan struct{} // receives a value when the test ends a hold
}

// read reads what the test asks for until the test has ended.
func (d *disturbance) read() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		act, at, _ := strings.Cut(in.Text(), " ")
		if act == "proceed" {
			d.proceed <- struct{}{}
			continue
		}
		d.mu.Lock()
		d.act, d.at = act, at
		d.mu.Unlock()
		fmt.Println("armed")
	}
}

// reached disturbs the process if the test has asked for it at this point.
func (d *disturbance) reached(point string) {
	d.mu.Lock()
	act := ""
	if d.at == point {
		act, d.at = d.act, ""
	}
	d.mu.Unlock()
	if act == "" {
		return
	}
	fmt.Println("reached", point)
	switch act {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hold":
		<-d.proceed
	}
}
