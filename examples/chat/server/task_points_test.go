//go:build unix

package server_test

import (
	"context"

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

// The points of an import at which a process may be killed.
const (
	importWritten   = "in the handler of an import"
	importCommitted = "after the commit of an import"
)

// imported is the point in the handler after its last write.
func (p *points) imported(next server.ImportFunc) server.ImportFunc {
	return func(ctx context.Context, tx chatdb.Tx, in server.Imported) error {
		err := next(ctx, tx, in)
		p.pass(importWritten)
		return err
	}
}
