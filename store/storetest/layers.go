package storetest

import "testing"

// The layers, in their order.
const (
	layerCalls       = "single calls"
	layerClocks      = "clocks, late writers and reports"
	layerJoin        = "changes that join a batch"
	layerQueues      = "queues"
	layerTx          = "transactions"
	layerConcurrent  = "concurrent transactions"
	layerBatches     = "batches of statements"
	layerLeaked      = "leaked goroutines"
	layerTransitions = "the protocol's transitions"
	layerRandom      = "random histories and races"
	layerDequeues    = "concurrent dequeues"
	layerReplicas    = "replicas"
	layerEngines     = "engines, lost replies and failing calls"
)

// layers returns the layers with the given parts, which are keyed by layer.
func layers(partsOf ...map[string][]part) []layer {
	var all []layer
	for _, name := range []string{
		layerCalls, layerClocks, layerJoin, layerQueues, layerTx, layerConcurrent, layerBatches, layerLeaked,
		layerTransitions, layerRandom, layerDequeues, layerReplicas, layerEngines,
	} {
		l := layer{name: name}
		for _, parts := range partsOf {
			l.parts = append(l.parts, parts[name]...)
		}
		all = append(all, l)
	}
	return all
}

// storeParts are the parts that need no transactions, by layer. h and e make the
// harness of each check.
func storeParts(h func(t *testing.T) *harness, e func(t *testing.T) *engineHarness) map[string][]part {
	return map[string][]part{
		layerCalls: {
			partOf("Swap", h, swapChecks()),
			partOf("Heartbeat", h, heartbeatChecks()),
			partOf("Fields", h, fieldChecks()),
			partOf("Keys", h, keyChecks()),
			partOf("Batch", h, batchChecks()),
			partOf("Get", h, getChecks()),
			partOf("Time", h, timeChecks()),
			partOf("Scan", h, scanChecks()),
			partOf("Purge", h, purgeChecks()),
		},
		layerClocks: {
			partOf("Clock", h, clockChecks()),
			partOf("Zombie", h, zombieChecks()),
			partOf("Sweep", h, sweepChecks()),
			partOf("Audit", h, auditChecks()),
			partOf("Watch", h, watchChecks()),
			partOf("Counts", h, countChecks()),
		},
		layerJoin:        {partUnless((*harness).lacksJoin, "Join", h, joinChecks())},
		layerQueues:      {partUnless((*harness).lacksDequeue, "Queue", h, queueChecks())},
		layerTransitions: {partOf("Transition", h, transitionChecks())},
		layerRandom: {
			partOf("Model", h, modelChecks()),
			partOf("Race", h, raceChecks()),
		},
		layerDequeues: {partUnless((*harness).lacksDequeue, "QueueRace", h, queueRaceChecks())},
		layerReplicas: {partUnless((*harness).lacksIsolate, "Again", h, againChecks())},
		layerEngines: {
			partOf("LostReply", h, lostReplyChecks()),
			partUnless((*harness).lacksConnection, "Wire", h, wireChecks()),
			partUnless(func(r *engineHarness) string { return r.lacksConnection() }, "WireCall", e, wireCallChecks(modes())),
			partOf("LateLeader", e, lateLeaderChecks(lateLeaderModes())),
			partOf("FailingCall", e, failingCallChecks(modes())),
			partOf("Storm", e, stormChecks(modes())),
		},
	}
}

// txParts are the parts that need transactions, by layer.
func txParts[Tx any](tx func(t *testing.T) *txHarness[Tx]) map[string][]part {
	e := func(t *testing.T) *engineHarness { return newTxEngineHarness(tx(t)) }
	return map[string][]part{
		layerTx: {
			partOf("Atomic", tx, atomicChecks[Tx]()),
			partOf("Savepoint", tx, savepointChecks[Tx]()),
			partOf("Lock", tx, lockChecks[Tx]()),
			partOf("SwapTx", tx, swapTxChecks[Tx]()),
			ownTxPart(tx),
		},
		layerConcurrent: {
			partOf("BatchTx", tx, batchTxChecks[Tx]()),
			partOf("ClockTx", tx, clockTxChecks[Tx]()),
			partOf("PurgeTx", tx, purgeTxChecks[Tx]()),
			partOf("ZombieTx", tx, zombieTxChecks[Tx]()),
			partUnless(func(r *txHarness[Tx]) string { return r.lacksDequeue() }, "QueueTx", tx, queueTxChecks[Tx]()),
		},
		layerBatches:     {partUnless((*txHarness[Tx]).lacksBatches, "AtomicBatch", tx, atomicBatchChecks[Tx]())},
		layerLeaked:      {partOf("LeakedGoroutine", tx, leakedGoroutineChecks[Tx]())},
		layerTransitions: {partOf("TransitionTx", tx, transitionTxChecks[Tx]())},
		layerRandom: {
			partOf("ModelTx", tx, modelTxChecks[Tx]()),
			partOf("RaceTx", tx, raceTxChecks[Tx]()),
		},
		layerReplicas: {partUnless(func(r *txHarness[Tx]) string { return r.lacksIsolate() }, "AgainTx", tx, againTxChecks[Tx]())},
		layerEngines: {
			partUnless(func(r *txHarness[Tx]) string { return r.lacksConnection() }, "WireTx", tx, wireTxChecks[Tx]()),
			partUnless(func(r *engineHarness) string { return r.lacksConnection() }, "WireCallTx", e, wireCallChecks(modesInTx())),
			partOf("LateLeaderTx", e, lateLeaderChecks(lateLeaderModesInTx())),
			partOf("FailingCallTx", e, failingCallChecks(modesInTx())),
			partOf("StormTx", e, stormChecks(modesInTx())),
		},
	}
}
