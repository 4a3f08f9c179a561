//go:build unix

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/store"
)

// The points of a welcome at which a process may be killed.
const (
	welcomeClaimed   = "after the claim of a welcome"
	welcomeWritten   = "in the handler of a welcome"
	welcomeToCommit  = "before the commit of a welcome"
	welcomeCommitted = "after the commit of a welcome"
)

// queuePoints is the store of the tasks with the points of a task.
type queuePoints struct {
	outboxed
	store.Dequeuer

	p *points
}

func (s queuePoints) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	claimed, err := s.Dequeuer.Dequeue(ctx, d)
	if len(claimed) > 0 {
		s.p.pass(welcomeClaimed)
	}
	return claimed, err
}

func (s queuePoints) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, chatdb.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	byRelay := false // a transaction of the outbox, which has no points
	verdict, err := s.TxStore.Atomic(ctx, id, hold,
		func(ctx context.Context, tx chatdb.Tx, current store.SwapResult) (*store.Change, error) {
			byRelay = current.Record != nil && current.Record.Operation == "semel_outbox"
			change, err := run(ctx, tx, current)
			if err == nil && !byRelay {
				s.p.pass(welcomeToCommit)
			}
			return change, err
		})
	if verdict == store.Committed && !byRelay {
		s.p.pass(welcomeCommitted)
		s.p.pass(importCommitted)
	}
	return verdict, err
}

// welcome is the point in the handler after its last write.
func (p *points) welcome(next server.WelcomeFunc) server.WelcomeFunc {
	return func(ctx context.Context, tx chatdb.Tx, in server.Welcome) (chatdb.Message, error) {
		m, err := next(ctx, tx, in)
		p.pass(welcomeWritten)
		return m, err
	}
}

// TestKilledWhileItWelcomes kills a server at each point of a welcome and starts it
// again: each member is welcomed once. TestKilledAtEveryPoint tests the points of
// the creations that enqueue the welcomes.
func TestKilledWhileItWelcomes(t *testing.T) {
	t.Parallel()
	fullUnraced(t)
	for name, open := range map[string]func(t *testing.T) files{
		"inline":          func(t *testing.T) files { return newFiles(t, inline) },
		"records":         func(t *testing.T) files { return newFiles(t, records) },
		"postgres leased": func(t *testing.T) files { return newPostgres(t, leased) },
	} {
		for _, point := range []string{welcomeClaimed, welcomeWritten, welcomeToCommit, welcomeCommitted} {
			t.Run(name+"/"+point, func(t *testing.T) {
				t.Parallel()
				killedWelcoming(t, open(t), point)
			})
		}
	}
}

func killedWelcoming(t *testing.T, f files, point string) {
	s := start(t, f.args(shortLease)...)
	owner, other := s.signIn(t, "owner"), s.signIn(t, "other")
	domain := f.openDomain(t)
	n := rounds(1)
	var groups []string
	for i := range n {
		asked := creation(owner, fmt.Sprintf("key-%d", i), "crew", other.ID)
		s.arm(t, "kill", point)
		go func() { _, _ = s.settle(t.Context(), asked) }() // it may have an answer or not
		s.killedAt(t, point)
		s = start(t, f.args(shortLease)...)
		group := s.settled(t, asked).want(t, http.StatusCreated, "").value(t)["id"].(string)
		s.wantWelcomes(t, domain, owner, group, owner.ID, other.ID)
		groups = append(groups, group)
		// A welcome is visible a moment before its process has passed the last point. The next kill
		// must not hit that process there, while it creates the next group.
		s.stop(t)
		s = start(t, f.args(shortLease)...)
	}
	s.untilQueue(t, owner, "welcome_member", queueCount{Done: int64(2 * n)})
	for _, group := range groups { // no task is left that could still run
		s.wantWelcomes(t, domain, owner, group, owner.ID, other.ID)
	}
	t.Logf("killed %d times %s, each member welcomed once", n, point)
}
