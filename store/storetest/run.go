package storetest

import (
	"slices"
	"testing"
)

// RunStore tests the stores that newStore makes, a fresh one for each check: all
// checks that need no transaction. newStore cleans up with t.Cleanup.
//
// Checks run one after another. Failures carry the name of the part and of the
// check, as in Swap/Owner.
//
// With parts, only those run; see [StoreCallParts].
func RunStore(t *testing.T, newStore func(t testing.TB) StoreSubject, parts ...string) {
	t.Helper()
	h := func(t *testing.T) *harness { return newHarness(t, newStore(t)) }
	runLayers(t, layers(storeParts(h, func(t *testing.T) *engineHarness { return newEngineHarness(h(t)) })), parts)
}

// Run is [RunStore] for stores with transactions: it runs the checks of RunStore,
// and the checks of transactions.
func Run[Tx any](t *testing.T, newStore func(t testing.TB) Subject[Tx], parts ...string) {
	t.Helper()
	tx := func(t *testing.T) *txHarness[Tx] { return newTxHarness(t, newStore(t)) }
	h := func(t *testing.T) *harness { return tx(t).harness }
	e := func(t *testing.T) *engineHarness { return newTxEngineHarness(tx(t)) }
	runLayers(t, layers(storeParts(h, e), txParts(tx)), parts)
}

// StoreCallParts names the parts with every kind of call, concurrent calls, lost replies and
// isolated replicas. They are enough for a further configuration of a store, as behind a pooler,
// that makes the same decisions as the one for which all parts run.
func StoreCallParts() []string {
	return []string{
		"Swap", "Heartbeat", "Fields", "Keys", "Batch", "Get", "Scan", "Purge", "Sweep", "Audit", "Counts", "Join", "Queue",
		"Race", "QueueRace", "Again", "Wire", "WireCall",
	}
}

// CallParts are [StoreCallParts] and those of transactions.
func CallParts() []string {
	return append(StoreCallParts(), "Atomic", "Savepoint", "Lock", "SwapTx", "OwnTx", "BatchTx", "QueueTx", "AtomicBatch", "LeakedGoroutine",
		"RaceTx", "AgainTx", "WireTx", "WireCallTx")
}

// runLayers runs the named parts of the layers, or all parts if there is no name.
func runLayers(t *testing.T, all []layer, names []string) {
	t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(l layer) bool { return l.has(name) }) {
			t.Errorf("the suite has no part %q", name)
		}
	}
	for _, l := range all {
		if t.Failed() {
			t.Logf("%s: skipped, because it builds on what has failed", l.name)
			continue
		}
		for _, p := range l.parts {
			if len(names) == 0 || slices.Contains(names, p.name) {
				t.Run(p.name, p.run)
			}
		}
	}
}

// layer is a set of parts that are meaningful if the layers before it pass.
type layer struct {
	name  string
	parts []part
}

func (l layer) has(name string) bool {
	return slices.ContainsFunc(l.parts, func(p part) bool { return p.name == name })
}

// part is a set of checks of one feature.
type part struct {
	name   string
	checks []testCase
	lacks  func(t *testing.T) string // returns why the part cannot run, "" if it can
}

// testCase runs one check on a fresh store.
type testCase struct {
	name string
	run  func(t *testing.T)
}

func (p part) run(t *testing.T) {
	if p.lacks != nil {
		if why := p.lacks(t); why != "" {
			t.Skip(why)
		}
	}
	for _, c := range p.checks {
		t.Run(c.name, c.run)
	}
}

// partOf returns the part with these checks. newHarness makes the harness of each
// check.
func partOf[H any](name string, newHarness func(t *testing.T) H, checks []checkCase[H]) part {
	p := part{name: name}
	for _, c := range checks {
		p.checks = append(p.checks, testCase{c.name, func(t *testing.T) { c.run(newHarness(t)) }})
	}
	return p
}

// partUnless is partOf, and is skipped if lacks returns a reason.
func partUnless[H any](lacks func(r H) string, name string, newHarness func(t *testing.T) H, checks []checkCase[H]) part {
	p := partOf(name, newHarness, checks)
	p.lacks = func(t *testing.T) string { return lacks(newHarness(t)) }
	return p
}
