// Package server is the chat server: its flags, its HTTP API, and the operations
// that it runs once per key. They create a group, send a message, pay for a boost
// at another server, welcome a member, and import a message from a queue.
package server

import (
	"log/slog"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/metricsserver"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/task"
)

// app is one server over its databases.
type app struct {
	config     config
	log        *slog.Logger
	metrics    *metricsserver.Server // nil: none
	domain     *database             // the chat's own tables
	records    *database             // the idempotency records; the same as domain unless -records names another
	transact   transactFunc
	create     createFunc
	writer     chatdb.Writer
	bus        eventBus
	live       *live.Server
	relay      *outbox.Relay
	woken      chan struct{} // of wakeUps
	payments   *payments     // nil: boosts are off
	engine     *semel.Engine[chatdb.Tx]
	queue      *semel.Engine[chatdb.Tx]
	operations operations
	inbox      *inbox.Inbox[imported]
	importer   *importer // nil: there is no broker
	worker     *task.Worker
	sweepers   []*admin.Sweeper
	counts     counts
	handler    http.Handler
}
