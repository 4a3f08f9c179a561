package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
)

// txFunc does the domain's part of an operation in a transaction.
type txFunc[T any] func(ctx context.Context, tx chatdb.Tx) (T, error)

// once runs fn once for the call: in the record's own transaction, or, when the
// records live in another file, in one of the chat's database.
func once[T any](ctx context.Context, s *app, c semel.Call, fn txFunc[T]) (T, bool, error) {
	if s.config.mode != modeApart {
		return semel.DoTx(ctx, s.engine, c, func(ctx context.Context, tx chatdb.Tx) (T, error) {
			v, err := fn(ctx, tx)
			return v, proven(err)
		})
	}
	return semel.Do(ctx, s.engine, c, func(ctx context.Context) (v T, err error) {
		err = s.transact(ctx, func(ctx context.Context, tx chatdb.Tx) error {
			v, err = fn(ctx, tx)
			return err
		})
		if errors.Is(err, errCommit) {
			return v, err // the one error that leaves it open what happened
		}
		return v, proven(err)
	})
}

// proven marks the error of a transaction that was rolled back. A member who
// does not exist is the operation's own answer, kept for good. Everything else
// is the moment's: the key may try again.
func proven(err error) error {
	unknown, ok := errors.AsType[*chatdb.UnknownUsersError](err)
	switch {
	case err == nil:
		return nil
	case ok:
		return semel.Final(unknownMember(unknown))
	default:
		return semel.NotCommitted(fmt.Errorf("%w: %w", problemOf(err), err))
	}
}

// refusal is what the stored failure of a creation says besides its sentence.
type refusal struct {
	Field string  `json:"field"`
	Users []int64 `json:"users"`
}

func unknownMember(e *chatdb.UnknownUsersError) *semel.Failure {
	// Numbers and a word always marshal.
	details, _ := json.Marshal(refusal{Field: fieldMembers, Users: e.IDs})
	return &semel.Failure{Code: codeUnknownMember, Message: nobody(e), Details: details}
}

// errCommit says that a commit got no clear answer.
var errCommit = errors.New("commit")

// transaction returns what runs a function in one transaction of db. Any error
// but errCommit means that nothing was committed and nothing will be.
func transaction(db chatdb.DB) transactFunc {
	return func(ctx context.Context, fn func(ctx context.Context, tx chatdb.Tx) error) error {
		tx, err := db.Begin(ctx)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		// A caller that hangs up must not turn a commit into a question.
		lasting := context.WithoutCancel(ctx)
		defer func() { _ = tx.Rollback(lasting) }() // does nothing after the commit
		if err := fn(ctx, tx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := tx.Commit(lasting); err != nil {
			return fmt.Errorf("%w: %w", errCommit, err)
		}
		return nil
	}
}
