package sim

import "github.com/semelgo/semel/store"

// opKind is what an actor is about to ask of the store or of the world outside.
type opKind uint8

const (
	opSwap opKind = iota + 1
	opGet
	opScan
	opPurge
	opBegin  // of a transaction
	opCommit // its last statement, and the commit behind it
	opAct    // the effect, outside
	opRaise  // the fence at the receiver
	opLook   // for evidence, at the receiver
	opDequeue
	opBatch  // a change and statements, all together
	opSwapTx // of another record, in a transaction
	opWait   // for an answer to what somebody else asks for it
	opStart  // helping the others of its process
	opRest   // before it asks
	opGather // what came, or joined, in one transaction
	opSeal   // its commit
	opKinds
)

func (k opKind) String() string {
	return [opKinds]string{"", "swap", "get", "scan", "purge", "begin", "commit", "act", "raise", "look", "dequeue", "send together", "enqueue", "wait for the others", "begin", "ask", "write together", "commit together"}[k]
}

// op is one call that an actor waits to be let through with.
type op struct {
	kind    opKind
	row     int // which record it is about
	change  store.Change
	hold    bool
	again   bool // a dequeue that only asks what an earlier one claimed
	session *session
	attempt grant          // whose effect it is, or whose fence
	batch   []store.Change // all of a swap that is asked for others
	settled func() bool    // what is waited for is there
}

// how says what becomes of a call.
type how uint8

const (
	// howOK: it is carried out and answered.
	howOK how = iota
	// howLost: it never arrives; the asker gets an error.
	howLost
	// howEaten: it is carried out, its answer is lost; the asker gets an error.
	howEaten
	// howLate: the asker gets an error, and it may yet arrive at any time.
	howLate
	// howAborted: a commit that certainly did not happen.
	howAborted
	// howConflict: a commit that the database gave up in favour of others.
	howConflict
	// howUnsure: a commit without an answer, its last statement still on its
	// way.
	howUnsure
	// howLocked: a commit without an answer, its last statement carried out and
	// holding the record, the decision still to come.
	howLocked
	// howRefused: the receiver says no, and remembers nothing.
	howRefused
	// howForbidden: the receiver says no, and that is the operation's answer.
	howForbidden
	// howDead: the asker is dead, and this is its ghost.
	howDead
	hows
)

func (h how) String() string {
	return [hows]string{
		"", "never arrives", "its answer is lost", "is late", "is rolled back", "is given up for others", "has no answer",
		"has no answer and holds the record", "is refused", "is refused for good",
		"is nobody's",
	}[h]
}

// writes tells whether the call changes anything.
func (o *op) writes() bool {
	k := o.kind
	return k == opSwap || k == opAct || k == opRaise || k == opPurge || k == opDequeue && !o.again
}

// outcomes lists, after howOK, what the budget lets become of o.
func (o *op) outcomes(b *Budget, soft bool, into []how) []how {
	into = append(into, howOK)
	if o.kind == opWait || o.kind == opStart || o.kind == opRest {
		return into
	}
	if o.kind == opSwapTx {
		return into
	}
	if o.kind == opGather || o.kind == opSeal {
		return o.gatheringOutcomes(b, into)
	}
	if o.kind == opCommit || o.kind == opBatch {
		if b.Aborts > 0 {
			into = append(into, howAborted)
		}
		if b.Conflicts > 0 {
			into = append(into, howConflict)
		}
		if b.Unsure > 0 {
			into = append(into, howUnsure)
			if !o.session.hold || soft {
				into = append(into, howLocked)
			}
		}
		if o.kind == opBatch && b.Lost > 0 {
			into = append(into, howLost)
		}
		return into
	}
	if o.kind == opAct && b.Refusals > 0 {
		into = append(into, howRefused, howForbidden)
	}
	if b.Lost == 0 {
		return into
	}
	into = append(into, howLost)
	if o.writes() {
		into = append(into, howEaten)
	}
	if o.writes() && o.kind != opRaise && o.kind != opPurge {
		into = append(into, howLate)
	}
	return into
}

// gatheringOutcomes lists what else may become of a transaction that others join.
func (o *op) gatheringOutcomes(b *Budget, into []how) []how {
	if o.kind == opGather {
		if b.Lost > 0 {
			into = append(into, howLost)
		}
		return into
	}
	if b.Aborts > 0 {
		into = append(into, howAborted)
	}
	if b.Unsure > 0 {
		into = append(into, howUnsure)
	}
	return into
}

// Budget is how much may go wrong in one run.
type Budget struct {
	Crashes  int // of actors
	Expiries int // of leases
	Unsure   int // commits without an answer
	Aborts   int // commits that are certainly rolled back
	Lost     int // other calls without an answer
	Refusals int // effects that the receiver refuses, or the operation itself
	Purges   int // retentions that pass
	Beats    int // heartbeats that come after the lease is over
	Delays   int // of waiting records, that pass
	Leaves   int // callers who give up while their claim is on its way
	Ages     int // times that more than half of the memory's age passes
	// Conflicts are transactions that are given up for others and run again. The
	// engine rests before it does, which takes real time: have few.
	Conflicts int
}

// spend takes h from the budget.
func (b *Budget) spend(h how) {
	switch h {
	case howLost, howEaten, howLate:
		b.Lost--
	case howAborted:
		b.Aborts--
	case howConflict:
		b.Conflicts--
	case howUnsure, howLocked:
		b.Unsure--
	case howRefused, howForbidden:
		b.Refusals--
	case howOK, howDead, hows:
	}
}

func (b *Budget) digest(d digest) digest {
	for _, n := range [...]int{b.Crashes, b.Expiries, b.Unsure, b.Aborts, b.Lost, b.Refusals, b.Purges, b.Beats, b.Delays, b.Conflicts, b.Leaves, b.Ages} {
		d = d.add(uint64(n))
	}
	return d
}
