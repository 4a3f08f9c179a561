package mysql

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

var (
	// ErrNoSchema means that a table is missing: run Up of package migrate/mysql first,
	// with the Prefix of the store.
	ErrNoSchema = errors.New("semel/mysql: tables are missing, run migrate/mysql.Up first")

	// ErrEnded means that the transaction has ended: the handler ended it, or returned.
	ErrEnded = fmt.Errorf("semel/mysql: %w", store.ErrTxEndedByHandler)

	errInUse = errors.New("semel/mysql: a result of the transaction has not been closed")
	errLost  = errors.New("semel/mysql: the connection was lost within the transaction")
)
