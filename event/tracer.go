package event

import "context"

// Tracer follows the runs of operations' functions, and carries the context of a trace
// to the process that goes on with the work. Package semelotel has one. Its methods must
// be fast and safe for concurrent use.
type Tracer interface {
	// Start is called before the function of an attempt runs, or of one transaction of
	// DoTx; a replay runs none, but for DoBatch, whose function runs before that is known. e describes the attempt, and its Kind is [Claimed].
	// The function runs with the returned context. end is called once, after the attempt,
	// with the kind of its end.
	Start(ctx context.Context, e Event) (_ context.Context, end func(Event))
	// Inject returns what Extract needs to continue the trace of ctx, or nothing. The engine
	// stores it with an enqueued call, without influence on its fingerprint, and package
	// outbox in the headers of an event. More than [MaxTrace] bytes are not stored.
	Inject(ctx context.Context) map[string]string
	// Extract returns ctx in the trace of an earlier Inject, or ctx if there is none.
	Extract(ctx context.Context, carrier map[string]string) context.Context
}

// MaxTrace is the largest number of bytes of names and values that Inject may return.
const MaxTrace = 2048

// BatchObserver is an [Observer] that also receives the size of each batch.
type BatchObserver interface {
	Observer
	// ObserveBatch is called for each round trip in which the engine sends changes of records
	// to its store, with their number. A change that is the last statement of a transaction,
	// or that a worker's claim makes, is in none.
	ObserveBatch(ctx context.Context, changes int)
}
