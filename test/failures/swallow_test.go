package failures_test

import (
	"context"
	"net/http"

	"github.com/semelgo/semel"
)

// swallowing has its effect, then runs a statement that is refused the first
// time, says nothing of it, and answers 201.
func (w *world[Tx]) swallowing(by way, first *bool) http.Handler {
	run := func(ctx context.Context, rw http.ResponseWriter, r *http.Request, tx Tx) error {
		if err := w.effect(ctx, tx, keyOf(r)); err != nil {
			return err
		}
		if *first {
			*first = false
			_ = w.Bad(ctx, tx) // the mistake that is shown
		}
		rw.WriteHeader(http.StatusCreated)
		return nil
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var err error
		if by == inline {
			tx, _ := semel.TxOf(r.Context(), w.engine)
			err = run(r.Context(), rw, r, tx)
		} else {
			_, err = semel.InTx(r.Context(), w.engine, func(ctx context.Context, tx Tx) (any, error) {
				return nil, run(ctx, rw, r, tx)
			})
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	})
}
