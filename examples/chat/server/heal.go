package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
)

// probes search the chat's own tables for the effect of an unfinished attempt,
// when the records are in another database. They search only by the key, which
// the attempt's transaction wrote next to its effect. A group with the same name
// and members is another group.
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

func (p probes) user(ctx context.Context, _ semel.Scope, key string) (any, bool, error) {
	u, err := chatdb.UserBySignUp(ctx, p.q, key)
	return evidence(u, err)
}

// find makes a probe of a look-up. The probe returns the result that the
// operation returned.
func find[T any](_ context.Context, scope semel.Scope, _ string, look func(user int64) (T, error)) (any, bool, error) {
	user, err := userOf(scope)
	if err != nil {
		return nil, false, err
	}
	v, err := look(user)
	return evidence(v, err)
}

// evidence returns the result of a look-up as a probe does.
func evidence(v any, err error) (any, bool, error) {
	switch {
	case errors.Is(err, chatdb.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	default:
		return v, true, nil
	}
}

// scopeOf returns the scope of a user's keys.
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
