package server

import (
	"context"
	"net/http"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
)

// hooks are functions that wrap parts of the server while it is assembled. Tests
// use them to observe, hold or kill it. The zero value wraps nothing.
type hooks struct {
	// Records wraps the store of the keys' records.
	Records func(store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx]
	// Queue wraps the store of tasks and imports.
	Queue func(store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx]
	// Welcome wraps the function that welcomes a member in a transaction.
	Welcome func(welcomeFunc) welcomeFunc
	// Import wraps the function that writes an imported message in a transaction.
	Import func(importFunc) importFunc
	// Publish wraps the relay's publisher of changes.
	Publish func(outbox.Publisher) outbox.Publisher
	// Domain wraps transactions of the chat's own database.
	Domain func(transactFunc) transactFunc
	// Create wraps the function that creates a group in a transaction.
	Create func(createFunc) createFunc
	// Edge wraps the whole HTTP handler.
	Edge func(http.Handler) http.Handler
	// Observer wraps the engine's observer.
	Observer func(event.Observer) event.Observer
}

type (
	// transactFunc runs a function in one transaction of the chat's database.
	transactFunc func(ctx context.Context, fn func(ctx context.Context, tx chatdb.Tx) error) error
	// createFunc is chatdb.Writer.CreateGroup.
	createFunc func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error)
	// welcomeFunc writes the message that welcomes a member.
	welcomeFunc func(ctx context.Context, tx chatdb.Tx, in welcome) (chatdb.Message, error)
	// importFunc writes a message that was imported.
	importFunc func(ctx context.Context, tx chatdb.Tx, in imported) error
)

// wrapped returns v wrapped by the seam, and v itself if the seam is nil.
func wrapped[T any](seam func(T) T, v T) T {
	if seam == nil {
		return v
	}
	return seam(v)
}
