package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
)

// txFunc writes an operation's effect in a transaction.
type txFunc[T any] func(ctx context.Context, tx chatdb.Tx) (T, error)

// once runs fn once for the call: in the record's own transaction, or, if the
// records are in another database, in a transaction of the chat's database.
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
			return v, err // after it the effect is unknown
		}
		return v, proven(err)
	})
}

// proven marks the error of a transaction that was rolled back. An unknown member
// and a taken name are the operation's own answers, so they are final. After every other
// error the same key may be tried again.
func proven(err error) error {
	var unknown *chatdb.UnknownUsersError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return semel.Final(unknownMember(unknown))
	case errors.Is(err, chatdb.ErrNameTaken):
		return semel.Final(&semel.Failure{Code: codeNameTaken, Message: "Another user has this name."})
	default:
		return semel.NotCommitted(fmt.Errorf("%w: %w", problemOf(err), err))
	}
}

// rejection is the Details of a stored failure.
type rejection struct {
	Field string   `json:"field"`
	Users []int64  `json:"users,omitempty"`
	Names []string `json:"names,omitempty"`
}

func unknownMember(e *chatdb.UnknownUsersError) *semel.Failure {
	// Marshaling cannot fail.
	details, _ := json.Marshal(rejection{Field: fieldOf(e), Users: e.IDs, Names: e.Names})
	return &semel.Failure{Code: codeUnknownMember, Message: unknownUsers(e), Details: details}
}
