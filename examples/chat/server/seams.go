package server

import (
	"context"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/store"
)

// seams are the places where a server is put together and something may be put
// in between: a watcher, a barrier, an end. The zero value puts nothing.
type seams struct {
	// Records wraps the store of the records.
	Records func(store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx]
	// Queue wraps the store of the tasks and of the import.
	Queue func(store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx]
	// Welcome wraps what welcomes a member inside its transaction.
	Welcome func(welcomeFunc) welcomeFunc
	// Import wraps what writes an imported message inside its transaction.
	Import func(importFunc) importFunc
	// Domain wraps the transactions of the chat's own database.
	Domain func(transactFunc) transactFunc
	// Create wraps what creates a group inside its transaction.
	Create func(createFunc) createFunc
	// Edge wraps all of HTTP.
	Edge func(http.Handler) http.Handler
	// Observer wraps who is told what the engine sees.
	Observer func(semel.Observer) semel.Observer
}

type (
	// transactFunc runs a function in one transaction of the chat's database.
	transactFunc func(ctx context.Context, fn func(ctx context.Context, tx chatdb.Tx) error) error
	// createFunc is chatdb.CreateGroupTx.
	createFunc func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error)
	// welcomeFunc writes the message that welcomes a member.
	welcomeFunc func(ctx context.Context, tx chatdb.Tx, in welcome) (chatdb.Message, error)
	// importFunc writes a message that was imported.
	importFunc func(ctx context.Context, tx chatdb.Tx, in imported) error
)

// through returns v as the seam, if there is one, makes it.
func through[T any](seam func(T) T, v T) T {
	if seam == nil {
		return v
	}
	return seam(v)
}
