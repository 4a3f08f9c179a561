package storetest

import "testing"

// Run tests the stores that newStore makes, a fresh one for each check. newStore
// cleans up with t.Cleanup.
//
// Checks run one after another. Failures carry the name of the part and of the
// check, as in Swap/Owner.
func Run[Tx any](t *testing.T, newStore func(t testing.TB) Subject[Tx]) {
	t.Helper()
	for _, layer := range layers[Tx]() {
		if t.Failed() {
			t.Logf("%s: skipped, because it builds on what has failed", layer.name)
			continue
		}
		for _, p := range layer.parts {
			t.Run(p.name, func(t *testing.T) { p.run(t, newStore) })
		}
	}
}

// layer is a set of parts that are meaningful if the layers before it pass.
type layer[Tx any] struct {
	name  string
	parts []part[Tx]
}

// part is a set of checks of one feature.
type part[Tx any] struct {
	name   string
	checks []check[Tx]
	lacks  func(s Subject[Tx]) string // returns why the part cannot run on s, "" if it can
}

// check is one requirement, tested on a fresh store.
type check[Tx any] struct {
	name string
	run  func(r *txHarness[Tx])
}

func (p part[Tx]) run(t *testing.T, newStore func(t testing.TB) Subject[Tx]) {
	if p.lacks != nil {
		if why := p.lacks(newStore(t)); why != "" {
			t.Skip(why)
		}
	}
	for _, c := range p.checks {
		t.Run(c.name, func(t *testing.T) { c.run(newTxHarness(t, newStore(t))) })
	}
}

func layers[Tx any]() []layer[Tx] {
	return []layer[Tx]{
		{"single calls", []part[Tx]{
			plain[Tx]("Swap", swapChecks()),
			plain[Tx]("Heartbeat", heartbeatChecks()),
			plain[Tx]("Fields", fieldChecks()),
			plain[Tx]("Keys", keyChecks()),
			plain[Tx]("Batch", batchChecks()),
			plain[Tx]("Get", getChecks()),
			plain[Tx]("Time", timeChecks()),
			plain[Tx]("Scan", scanChecks()),
			plain[Tx]("Purge", purgeChecks()),
		}},
		{"clocks, late writers and reports", []part[Tx]{
			plain[Tx]("Clock", clockChecks()),
			plain[Tx]("Zombie", zombieChecks()),
			plain[Tx]("Sweep", sweepChecks()),
			plain[Tx]("Audit", auditChecks()),
			plain[Tx]("Counts", countChecks()),
		}},
		{"changes that join a batch", []part[Tx]{
			partUnless(plain[Tx]("Join", joinChecks()), lacksJoin[Tx]),
		}},
		{"queues", []part[Tx]{
			partUnless(plain[Tx]("Queue", queueChecks()), lacksDequeue[Tx]),
		}},
		{"transactions", []part[Tx]{
			{name: "Atomic", checks: atomicChecks[Tx]()},
			{name: "Savepoint", checks: savepointChecks[Tx]()},
			{name: "Lock", checks: lockChecks[Tx]()},
			{name: "SwapTx", checks: swapTxChecks[Tx]()},
		}},
		{"concurrent transactions", []part[Tx]{
			{name: "BatchTx", checks: batchTxChecks[Tx]()},
			{name: "ClockTx", checks: clockTxChecks[Tx]()},
			{name: "PurgeTx", checks: purgeTxChecks[Tx]()},
			{name: "ZombieTx", checks: zombieTxChecks[Tx]()},
			{name: "QueueTx", checks: queueTxChecks[Tx](), lacks: lacksDequeue[Tx]},
		}},
		{"batches of statements", []part[Tx]{
			{name: "AtomicBatch", checks: atomicBatchChecks[Tx](), lacks: lacksBatches[Tx]},
		}},
		{"leaked goroutines", []part[Tx]{
			{name: "LeakedGoroutine", checks: leakedGoroutineChecks[Tx]()},
		}},
		{"the protocol's transitions", []part[Tx]{
			plain[Tx]("Transition", transitionChecks()),
			{name: "TransitionTx", checks: transitionTxChecks[Tx]()},
		}},
		{"random histories and races", []part[Tx]{
			{name: "Model", checks: modelChecks[Tx]()},
			plain[Tx]("Race", raceChecks()),
			{name: "RaceTx", checks: raceTxChecks[Tx]()},
		}},
		{"concurrent dequeues", []part[Tx]{
			partUnless(plain[Tx]("QueueRace", queueRaceChecks()), lacksDequeue[Tx]),
		}},
		{"engines, lost replies and failing calls", []part[Tx]{
			plain[Tx]("LostReply", lostReplyChecks()),
			{name: "Wire", checks: wireChecks[Tx](), lacks: lacksConnection[Tx]},
			{name: "WireCall", checks: wireCallChecks[Tx](), lacks: lacksConnection[Tx]},
			{name: "LateLeader", checks: lateLeaderChecks[Tx]()},
			{name: "FailingCall", checks: failingCallChecks[Tx]()},
			{name: "Storm", checks: stormChecks[Tx]()},
		}},
	}
}

// storeCheck is a check that needs no transaction.
type storeCheck struct {
	name string
	run  func(r *harness)
}

func plain[Tx any](name string, checks []storeCheck) part[Tx] {
	p := part[Tx]{name: name}
	for _, c := range checks {
		p.checks = append(p.checks, check[Tx]{c.name, func(r *txHarness[Tx]) { c.run(r.harness) }})
	}
	return p
}

// partUnless is a part that is skipped if lacks returns a reason.
func partUnless[Tx any](p part[Tx], lacks func(s Subject[Tx]) string) part[Tx] {
	p.lacks = lacks
	return p
}
