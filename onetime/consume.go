package onetime

import (
	"context"

	"github.com/semelgo/semel"
)

// Consume uses a token of subject: it runs fn once, wherever the effect of fn is, and
// returns its result to every submit of the token. replayed means that another submit
// made the result. Store and engine need no transactions.
//
// Besides [ErrUnknown] and [ErrExpired] the errors are those of semel.Do. After an error of
// fn that is marked with semel.NotCommitted, the token can be used again until its time is
// over. Any other error leaves the effect unknown, as the Policy says; semel.Final stores
// the error, and every further submit receives it.
func Consume[P, T any](ctx context.Context, p *Purpose[P], e semel.Runner, subject semel.Scope, token string, fn func(ctx context.Context, payload P) (T, error)) (v T, replayed bool, err error) {
	return semel.Do(ctx, e, p.Call(subject, token), func(ctx context.Context) (v T, err error) {
		payload, err := p.Payload(ctx)
		if err != nil {
			return v, semel.NotCommitted(err)
		}
		return fn(ctx, payload)
	})
}

// ConsumeTx is [Consume] for an effect in the records' own database: the transaction of fn
// commits the effect, the use of the token and the result together. After an error of fn
// everything is rolled back, and the token can be used again until its time is over;
// semel.Final stores the error. The other rules and errors are those of semel.DoTx.
func ConsumeTx[P, T, Tx any](ctx context.Context, p *Purpose[P], e *semel.Engine[Tx], subject semel.Scope, token string, fn func(ctx context.Context, tx Tx, payload P) (T, error)) (v T, replayed bool, err error) {
	return semel.DoTx(ctx, e, p.Call(subject, token), func(ctx context.Context, tx Tx) (v T, err error) {
		payload, err := p.Payload(ctx)
		if err != nil {
			return v, semel.NotCommitted(err)
		}
		return fn(ctx, tx, payload)
	})
}
