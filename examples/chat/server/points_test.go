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

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/store"
)

// The points of the path of a creation where a process may end.
const (
	beforeClaim  = "before the claim"
	afterClaim   = "after the claim"
	inHandler    = "in the handler"
	beforeCommit = "before the commit"
	afterCommit  = "after the commit"
	beforeAnswer = "before the answer"
)

// points watches a server's path from the places where it is put together. At
// the point it is armed for it says so, and then ends or stops its process.
type points struct {
	mu    sync.Mutex
	armed string
	act   string
	cont  chan os.Signal
}

// obey reads orders, one in a line: "kill at a point" or "stop at a point".
func (p *points) obey(orders *bufio.Scanner) {
	for orders.Scan() {
		act, point, _ := strings.Cut(orders.Text(), " ")
		p.mu.Lock()
		p.act, p.armed = act, point
		p.mu.Unlock()
		tell("armed")
	}
}

// pass is called at every point.
func (p *points) pass(point string) {
	p.mu.Lock()
	act := p.act
	here := p.armed == point
	if here {
		p.armed = ""
	}
	p.mu.Unlock()
	if !here {
		return
	}
	tell("reached " + point)
	if act == "kill" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-p.cont // a stop takes a moment: nothing goes on before the one who continues it
}

// tell writes a line to the parent, at once and whole.
func tell(line string) { _, _ = fmt.Fprintln(os.Stdout, line) }

// seams puts the points into a server.
func (p *points) seams() server.Seams {
	return server.Seams{
		Records: func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] { return pointStore{s, p} },
		Domain:  p.domain,
		Create:  p.create,
		Queue: func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] {
			return queuePoints{s, s.(store.Dequeuer), p}
		},
		Welcome:  p.welcome,
		Import:   p.imported,
		Edge:     p.edge,
		Observer: func(semel.Observer) semel.Observer { return teller{} },
	}
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
	// A leader that is as rude as can be: it never looks whether its lease is
	// over. What protects is the fence alone.
	ctx = context.WithoutCancel(ctx)
	verdict, err := s.TxStore.Atomic(ctx, id, hold,
		func(ctx context.Context, tx chatdb.Tx, stands store.SwapResult) (*store.Change, error) {
			if hold && !stands.Busy {
				s.p.pass(afterClaim)
			}
			change, err := run(ctx, tx, stands)
			if err == nil {
				s.p.pass(beforeCommit)
			}
			return change, err
		})
	if verdict == store.Committed {
		s.p.pass(afterCommit)
	}
	tell(fmt.Sprintf("transaction %s: %v", verdict, err))
	return verdict, err
}

// domain has the points of the chat's own transactions, which are those that
// matter when the records live in another file.
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

// create is in the handler, when it has written all it writes.
func (p *points) create(next server.CreateFunc) server.CreateFunc {
	return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
		g, err := next(ctx, tx, n)
		p.pass(inHandler)
		return g, err
	}
}

// edge is where the answer to a creation is about to leave.
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

// teller tells the parent what the engine sees.
type teller struct{}

func (teller) Observe(_ context.Context, e semel.Event) {
	tell(fmt.Sprintf("event %s attempt %d %s", e.Kind, e.Attempt, e.State))
}

// chatChild is the program that a test starts as a process of its own.
func chatChild() int {
	p := &points{cont: make(chan os.Signal, 1)}
	signal.Notify(p.cont, syscall.SIGCONT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go p.obey(bufio.NewScanner(os.Stdin))
	return server.Run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr, p.seams())
}

// beChild is what this test binary does as another program.
func beChild(name string) int {
	if name == "attempt" {
		return attemptChild()
	}
	if name == "payment" {
		return paymentChild()
	}
	return chatChild()
}
