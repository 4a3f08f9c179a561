package semel

import (
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// Engine runs operations once over a store whose transactions are of type Tx. Its
// methods may be called concurrently. Close drains it.
type Engine[Tx any] = engine.Engine[Tx]

// Runner is any engine: an [Engine] with any type of transactions, or an engine of
// [NewRunner] without transactions.
type Runner = engine.Runner

// New returns an engine over s. It reads the store's Capabilities once. It rejects
// a store that could let two leaders claim one attempt, or that survives less than
// [Options].Survive; the error then names the server's setting. Wrong options are a
// *FieldError. New starts no goroutine.
//
// New reads from the database, within Options.RecordTimeout. If the database is
// down or restarts meanwhile, the error is [ErrUnavailable]: call New again later.
// If the tables are missing, the error also wraps the store's own, such as
// postgres.ErrNoSchema, and another try does not help. An existing engine needs no
// restart when the database has restarted.
func New[Tx any](s store.TxStore[Tx], o Options) (*Engine[Tx], error) {
	return engine.New(s, engine.Options(o))
}

// NewRunner returns an engine over a store without transactions. Effects are then
// never in the store's database, so [DoTx], [InTx] and [EnqueueTx] do not accept it,
// and the policy [Atomic] is ErrInvalid. Everything else works as over an [Engine]:
// [Do] with the other policies, [Enqueue] and workers, inboxes in the mode Leased,
// middlewares, and operators' calls. The rules and the errors are those of [New].
func NewRunner(s store.Store, o Options) (Runner, error) {
	e, err := engine.NewRunner(s, engine.Options(o))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Options are the defaults of an engine's operations. The zero value has good
// defaults.
type Options struct {
	// Survive is the worst failure that must not lose records. New rejects a store
	// that survives less, and names the server's setting. Zero: store.PowerLoss.
	// A smaller one accepts the loss: an operation whose record is lost may run
	// again, and Observer receives the alarm event.NotDurable. The memory store needs
	// store.NoFailure. docs/durability.md says what remains of each guarantee.
	Survive store.Failure
	// Lease is how long a leader may be silent before others may take over. Zero:
	// 30 seconds.
	Lease time.Duration
	// Heartbeat is the interval of lease renewals. Zero: a third of the lease, so
	// that two may be lost.
	Heartbeat time.Duration
	// MaxRun is the longest that an attempt may run, even with heartbeats. Zero: no
	// limit.
	MaxRun time.Duration
	// Retention is the least time for which a finished record is kept, counted from
	// the outcome. It must be longer than RecordTimeout. A record past it still
	// answers until it is purged. Zero: 24 hours.
	Retention time.Duration
	// Wait is how long a follower waits for the leader before it gets
	// ErrInProgress. Zero: followers get it at once.
	Wait time.Duration
	// MaxWaiters is the largest number of waiting followers; further followers get
	// ErrInProgress at once. Zero: 1000.
	MaxWaiters int
	// RecordTimeout limits each round trip to the store, including the wait in a
	// queue and for a connection. For a claim and for the begin of a transaction
	// the caller's context is a second limit; for writing an outcome it is not. A
	// call whose transaction does not begin in time is ErrUnavailable, and its
	// function is not called. Zero: 5 seconds.
	RecordTimeout time.Duration
	// MaxQueued is the largest number of claims, and of reads, that wait to be sent
	// to the store. Further calls are ErrUnavailable, and nothing of them is sent.
	// Outcomes are never refused. Zero: 10,000.
	MaxQueued int
	// CacheBytes is the approximate memory that this engine uses to answer retries
	// of final records without the store. Zero: no cache. A final record changes
	// only when it is purged, or when an operator redrives it: callers of an engine
	// with a cache may see that up to CacheAge later.
	CacheBytes int
	// CacheAge is how long a final record is cached. Zero: 1 second.
	CacheAge time.Duration
	// MaxUnrecorded is the largest number of unrecorded outcomes that are kept and
	// retried. Zero: 1000. Negative: none; their leases then decide.
	MaxUnrecorded int
	// Operations are the operations of this program whose records the engine may
	// change without a call: Sweep settles records of crashed processes, workers
	// run tasks, and Redrive accepts failed tasks and messages. Sweep and workers
	// do not touch records of other operations. A call does not require its
	// operation to be listed. New reports a wrong definition, and two definitions
	// of one name. A call of another definition of a listed name is ErrInvalid.
	Operations []Declared
	// Clock is the clock for times in keys. Nil: the process's clock.
	Clock func() time.Time
	// Observer receives the engine's events. Nil: alarms, on which an operator must act,
	// are logged through slog.Default(), except for a loss of records that New finds and
	// Survive accepts, and other events are dropped; event.Slog logs all. An Observer that is
	// also an event.BatchObserver receives the sizes of batches.
	Observer event.Observer
	// Tracer follows the runs of operations' functions, and carries traces to enqueued
	// calls and to events of an outbox. Nil: none.
	Tracer event.Tracer
	// Journal keeps unrecorded outcomes across restarts of the process, in a file for
	// instance: see package journal. Nil: they are kept in memory only.
	Journal journal.Journal
}
