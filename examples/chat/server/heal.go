package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
)

// probes look in the chat's own tables for what an unfinished attempt may have
// left there, when the records live in another file. They find it by the key
// that was written beside it in its own transaction, and by nothing else: a
// group that looks alike is another group.
type probes struct {
	q chatdb.Querier
}

func (p probes) group(ctx context.Context, scope semel.Scope, key string) (any, bool, error) {
	return find(ctx, scope, key, func(user int64) (chatdb.Group, error) {
		return chatdb.GroupByCreation(ctx, p.q, user, key)
	})
}

func (p probes) message(ctx context.Context, scope semel.Scope, key string) (any, bool, error) {
	return find(ctx, scope, key, func(user int64) (chatdb.Message, error) {
		return chatdb.MessageBySending(ctx, p.q, user, key)
	})
}

// find turns a look-up into a probe's answer. What is found is the result as
// the operation itself returned it.
func find[T any](_ context.Context, scope semel.Scope, _ string, look func(user int64) (T, error)) (any, bool, error) {
	user, err := userOf(scope)
	if err != nil {
		return nil, false, err
	}
	v, err := look(user)
	switch {
	case errors.Is(err, chatdb.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	default:
		return v, true, nil
	}
}

// scopeOf is within whom a key is unique: its user.
func scopeOf(u chatdb.User) semel.Scope {
	return semel.ScopeOf(strconv.FormatInt(u.ID, 10))
}

func userOf(scope semel.Scope) (int64, error) {
	parts := scope.Parts()
	if len(parts) != 1 {
		return 0, fmt.Errorf("scope has %d parts, want the user", len(parts))
	}
	return strconv.ParseInt(parts[0], 10, 64)
}
