// Package frameworks shows package semelhttp with the routers chi, gin and echo and with
// Connect. Each file is one framework: copy its adapter into your program. An order is one
// row, which commits together with the response that retries receive.
package frameworks

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// Shop takes orders.
type Shop struct {
	Engine *semel.Engine[*sql.Tx]
}

// Once returns the middleware of a route. Each route has an operation of its own, so a
// client may use one key for two routes.
func (s *Shop) Once(operation string) func(http.Handler) http.Handler {
	op := semel.Define(operation, semel.OperationOptions[semelhttp.Request]{})
	once, err := semelhttp.Atomic(s.Engine, op, semelhttp.Options{ScopeFunc: scopeOf})
	if err != nil {
		panic(err) //nolint:forbidigo // a wrong name or option is found when the program starts
	}
	return once
}

// userKey is the key of the user in a request's context.
type userKey struct{}

// WithUser returns r with the user that the program's authentication has found.
func WithUser(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}

func scopeOf(r *http.Request) (semel.Scope, error) {
	user, ok := r.Context().Value(userKey{}).(string)
	if !ok {
		return semel.Scope{}, errors.New("not authenticated")
	}
	return semel.ScopeOf(user), nil
}

// ErrSoldOut refuses an order for good.
var ErrSoldOut = errors.New("sold out")

// Order is an order, and the answer to its request.
type Order struct {
	ID   int64  `json:"id"`
	Shop string `json:"shop"`
	Item string `json:"item"`
}

// Create inserts an order in the transaction of the request's context.
func (s *Shop) Create(ctx context.Context, o Order) (Order, error) {
	tx, ok := semel.TxOf(ctx, s.Engine)
	if !ok {
		return o, errors.New("the route is not protected by Once")
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO orders (shop, item) VALUES (?, ?)`, o.Shop, o.Item)
	if err != nil {
		return o, err
	}
	if o.Item == "unicorn" {
		return o, ErrSoldOut // the row above is rolled back
	}
	o.ID, err = result.LastInsertId()
	return o, err
}
