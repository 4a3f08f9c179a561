//go:build unix

package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
)

// The points of a creation at which a process may be killed.
const (
	beforeClaim  = "before the claim"
	afterClaim   = "after the claim"
	inHandler    = "in the handler"
	beforeCommit = "before the commit"
	afterCommit  = "after the commit"
	beforeAnswer = "before the answer"
)

// The points of the relay at which a process may be killed: at the second one the broker
// has the event, and the outbox has it too.
const (
	beforePublish = "before the publication"
	afterPublish  = "after the publication"
)

// points is a set of hooks in a server. At the point that the test has chosen, it
// reports to the test, and then kills or stops its own process.
type points struct {
	mu    sync.Mutex
	armed string
	act   string
	cont  chan os.Signal
}

// readCommands reads commands of the test, one per line: the action (kill or stop) and the
// point.
func (p *points) readCommands(orders *bufio.Scanner) {
	for orders.Scan() {
		act, point, _ := strings.Cut(orders.Text(), " ")
		p.mu.Lock()
		p.act, p.armed = act, point
		p.mu.Unlock()
		report("armed")
	}
}

// pass is called at each point.
func (p *points) pass(point string) {
	p.mu.Lock()
	act := p.act
	localServer := p.armed == point
	if localServer {
		p.armed = ""
	}
	p.mu.Unlock()
	if !localServer {
		return
	}
	report("reached " + point)
	if act == "kill" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-p.cont // SIGSTOP takes a moment; wait until the test sends SIGCONT
}

// report writes a line to the test in one write.
func report(line string) { _, _ = fmt.Fprintln(os.Stdout, line) }

// hooks returns the hooks.
func (p *points) hooks() server.Hooks {
	return server.Hooks{
		Records: func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] { return pointStore{s, p} },
		Domain:  p.domain,
		Create:  p.create,
		Publish: p.publish,
		Queue: func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] {
			return queuePoints{outboxed{s}, s.(store.Dequeuer), p}
		},
		Welcome:  p.welcome,
		Import:   p.imported,
		Edge:     p.edge,
		Observer: func(event.Observer) event.Observer { return eventPrinter{} },
	}
}

// outboxed is a store with its outbox.
type outboxed struct{ store.TxStore[chatdb.Tx] }

func (s outboxed) Outbox() store.Outbox[chatdb.Tx] {
	return s.TxStore.(store.OutboxStore[chatdb.Tx]).Outbox()
}

// pointStore is a store with the points of its writes.
type pointStore struct {
	store.TxStore[chatdb.Tx]

	p *points
}

func (s pointStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if !slices.ContainsFunc(changes, claims) {
		return s.TxStore.Swap(ctx, changes)
	}
	s.p.pass(beforeClaim)
	answers, err := s.TxStore.Swap(ctx, changes)
	for i, a := range answers {
		if claims(changes[i]) && a.Applied(changes[i]) {
			s.p.pass(afterClaim)
		}
	}
	return answers, err
}

func claims(c store.Change) bool { return c.To.State == store.InProgress && c.If != c.To.Token }

func (s pointStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, chatdb.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if hold { // inline: the right to create the record is the claim
		s.p.pass(beforeClaim)
	}
	// This leader ignores the end of its lease, so only the fence protects.
	ctx = context.WithoutCancel(ctx)
	verdict, err := s.TxStore.Atomic(ctx, id, hold,
		func(ctx context.Context, tx chatdb.Tx, current store.SwapResult) (*store.Change, error) {
			if hold && !current.Busy {
				s.p.pass(afterClaim)
			}
			change, err := run(ctx, tx, current)
			if err == nil {
				s.p.pass(beforeCommit)
			}
			return change, err
		})
	if verdict == store.Committed {
		s.p.pass(afterCommit)
	}
	report(fmt.Sprintf("transaction %s: %v", verdict, err))
	return verdict, err
}

// domain has the points of the chat's own transactions. They matter if the records
// are in another database.
func (p *points) domain(next server.TransactFunc) server.TransactFunc {
	return func(ctx context.Context, fn func(context.Context, chatdb.Tx) error) error {
		err := next(ctx, func(ctx context.Context, tx chatdb.Tx) error {
			err := fn(ctx, tx)
			if err == nil {
				p.pass(beforeCommit)
			}
			return err
		})
		if err == nil {
			p.pass(afterCommit)
		}
		return err
	}
}

// create is the point in the handler after its last write.
func (p *points) create(next server.CreateFunc) server.CreateFunc {
	return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
		g, err := next(ctx, tx, n)
		p.pass(inHandler)
		return g, err
	}
}

// publish has the points of the relay.
func (p *points) publish(next outbox.Publisher) outbox.Publisher {
	return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		p.pass(beforePublish)
		err := next.Publish(ctx, m)
		if err == nil {
			p.pass(afterPublish)
		}
		return err
	})
}

// edge is the point before the response to a creation is sent.
func (p *points) edge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/groups" {
			w = leaving{w, p}
		}
		next.ServeHTTP(w, r)
	})
}

type leaving struct {
	http.ResponseWriter

	p *points
}

func (l leaving) WriteHeader(status int) {
	if status == http.StatusCreated {
		l.p.pass(beforeAnswer)
	}
	l.ResponseWriter.WriteHeader(status)
}

// eventPrinter is an Observer that reports events to the test.
type eventPrinter struct{}

func (eventPrinter) Observe(_ context.Context, e event.Event) {
	report(fmt.Sprintf("event %s attempt %d %s", e.Kind, e.Attempt, e.State))
}

// runChild runs the chat server as a child process.
func runChild() int {
	p := &points{cont: make(chan os.Signal, 1)}
	signal.Notify(p.cont, syscall.SIGCONT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go p.readCommands(bufio.NewScanner(os.Stdin))
	return server.Run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr, p.hooks())
}
