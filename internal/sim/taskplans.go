package sim

// tasksOf lists the explorations of a mode whose keys the system owns: workers
// beside each other and beside callers, what they try again and what they give
// up, and people who step in.
func tasksOf(m mode) []Plan {
	plans := append(m.queuePlans(), m.triedPlans()...)
	if m.outside != inRecordsDB {
		return plans // what the receiver remembers is kept for longer than any record
	}
	return append(plans, Plan{
		Name: "joined", Callers: "x", Scopes: true, Joins: true, Workers: 1,
		Budget: Budget{Crashes: 1, Expiries: 1, Unsure: 1, Refusals: 1},
		Must:   []Mark{MarkCrash, MarkRelease, MarkLateCommit, MarkLateAbort, MarkUnsureOK, MarkUnsureNo, MarkTakeover},
	}, Plan{
		Name: "rivals", Callers: "xx", Scopes: true, Joins: true,
		Budget: Budget{Crashes: 1, Expiries: 1, Unsure: 1}, Must: []Mark{MarkBusy, MarkTakeover, MarkZombie, MarkLateAbort},
	}, Plan{
		Name: "purge", Callers: "x", Queued: true, Workers: 1, Rounds: 2, Purgers: 1,
		Budget: Budget{Refusals: 1, Purges: 1, Delays: 1}, Must: []Mark{MarkPurged, MarkDelay},
	})
}

// queuePlans are about who runs what waits.
func (m mode) queuePlans() []Plan {
	return []Plan{
		{
			Name: "workers", Queued: true, Workers: 2, Sweepers: 1,
			Budget: Budget{Crashes: 1, Expiries: 2, Unsure: 1}, Must: m.mustWorkers(),
		},
		{
			Name: "batch", Queued: true, Scopes: true, Workers: 1, Claims: 2, Rounds: 2, Sweepers: 1, MaxCrashes: 1,
			Budget: Budget{Expiries: 1, Lost: 1}, Must: m.mustBatch(MarkGivenBack, MarkArrived, MarkEcho),
		},
		{
			Name: "two", Queued: true, Scopes: true, Workers: 2, Claims: 2, Sweepers: 1,
			Budget: Budget{Expiries: 1, Unsure: 1}, Must: m.mustBatch(),
		},
		{
			Name: "blind", Queued: true, Scopes: true, Workers: 2, Claims: 2, Blind: true,
			Budget: Budget{Crashes: 1, Expiries: 1}, Must: m.mustBatch(MarkCrash),
		},
		{
			Name: "overlap", Queued: true, Scopes: true, Workers: 1, Rounds: 2, Takes: 2,
			Budget: Budget{Lost: 1}, Must: m.mustBatch(MarkGivenBack, MarkArrived),
		},
		{
			Name: "caller", Callers: "x", Enqueuers: 1, Workers: 1, Sweepers: 1,
			Budget: Budget{Crashes: 1, Expiries: 1, Refusals: 1, Delays: 1},
			Must:   []Mark{MarkQueued, MarkQueuedAlready, MarkCrash, MarkReplay, MarkFail},
		},
	}
}

// triedPlans are about what is tried again, and when that ends.
func (m mode) triedPlans() []Plan {
	return []Plan{
		{
			Name: "errors", Queued: true, Workers: 1, Rounds: 3, Redrivers: 1, Reschedulers: 1,
			Budget: Budget{Refusals: 2, Delays: 1}, Must: m.mustErrors(),
		},
		{
			Name: "unknown", Queued: true, Workers: 2, Sweepers: 1, MaxErrors: 1,
			Budget: Budget{Lost: 1, Expiries: 1}, Must: m.mustUnknown(),
		},
		{
			Name: "crashes", Queued: true, Workers: 2, Sweepers: 1, MaxCrashes: 1, Redrivers: 1,
			Budget: Budget{Crashes: 1, Expiries: 1, Refusals: 1}, Must: m.mustCrashes(),
		},
		{
			Name: "cancel", Queued: true, Workers: 1, Rounds: 2, Beating: true, Cancellers: 1, Sweepers: 1,
			Budget: Budget{Expiries: 1},
			Must:   []Mark{MarkCancelWaiting, MarkCancelRunning, MarkLeaseLost, MarkBeat},
		},
	}
}

// deepTasksOf lists those that take long: more of everything at once.
func deepTasksOf(m mode) []Plan {
	plans := []Plan{
		{
			Name: "long", Queued: true, Workers: 2, Rounds: 2, Sweepers: 1,
			Budget: Budget{Crashes: 1, Expiries: 2, Unsure: 1}, Must: m.mustWorkers(),
		},
		{
			Name: "pair", Queued: true, Scopes: true, Workers: 2, Takes: 2, Sweepers: 1,
			Budget: Budget{Lost: 1, Expiries: 1}, Must: m.mustBatch(MarkGivenBack, MarkArrived),
		},
		{
			Name: "tries", Queued: true, Workers: 1, Rounds: 3, Redrivers: 1, Reschedulers: 1,
			Budget: Budget{Refusals: 2, Delays: 1, Lost: 1}, Must: m.mustErrors(),
		},
		{
			Name: "deaths", Queued: true, Workers: 2, Sweepers: 1, MaxCrashes: 1, MaxErrors: 1, Redrivers: 1,
			Budget: Budget{Crashes: 1, Expiries: 1, Refusals: 1, Lost: 1}, Must: m.mustCrashes(),
		},
		{
			Name: "stop", Queued: true, Workers: 1, Rounds: 2, Beating: true, Cancellers: 1, Sweepers: 1,
			Budget: Budget{Expiries: 1, Refusals: 1, Delays: 1}, Must: []Mark{MarkCancelWaiting, MarkCancelRunning},
		},
		{
			Name: "anyone", Callers: "x", Enqueuers: 1, Workers: 1, Sweepers: 1,
			Budget: Budget{Crashes: 1, Expiries: 1, Refusals: 1, Lost: 1, Delays: 1},
			Must:   []Mark{MarkQueued, MarkQueuedAlready, MarkCrash, MarkArrived},
		},
	}
	for i := range plans {
		plans[i].Name, plans[i].Mode = m.name+"/"+plans[i].Name, m.name
	}
	return plans
}

// mustWorkers lists what dead workers and late ones lead to.
func (m mode) mustWorkers() []Mark {
	must := []Mark{MarkCrash, MarkReplay, MarkSettledByWorker}
	switch {
	case m.outside == inRecordsDB:
		return append(must, MarkRequeue, MarkRolledBack, MarkLateCommit, MarkLateAbort, MarkCrashes)
	case m.outside == keyed:
		return append(must, MarkRequeue, MarkSecondAnswer)
	case m.repeats:
		return append(must, MarkRequeue, MarkTakeover)
	default:
		return append(must, MarkDoubt, MarkSettle, MarkSettledByPerson)
	}
}

// mustBatch lists what taking more than one at a time leads to. What a
// transaction has ended is not ended together with others.
func (m mode) mustBatch(more ...Mark) []Mark {
	must := append([]Mark{MarkSettledByWorker}, more...)
	if m.outside != inRecordsDB {
		must = append(must, MarkTogether)
	}
	return must
}

// mustErrors lists what refusals lead to. A receiver that remembers keys refuses
// once and for all.
func (m mode) mustErrors() []Mark {
	must := []Mark{MarkFail, MarkRedrive}
	if m.outside != keyed {
		must = append(must, MarkRelease, MarkDelay, MarkErrors)
	}
	return must
}

// mustUnknown lists what an effect without an answer leads to, when there is no
// second try.
func (m mode) mustUnknown() []Mark {
	must := []Mark{MarkArrived, MarkEcho}
	if m.outside != inRecordsDB {
		must = append(must, MarkDoubt, MarkSettledByPerson)
	}
	return must
}

// mustCrashes lists what a single death leads to that is one too many.
func (m mode) mustCrashes() []Mark {
	must := []Mark{MarkCrash, MarkRedrive}
	if m.outside == inRecordsDB {
		return append(must, MarkCrashes)
	}
	if m.runsAgain() {
		must = append(must, MarkRedriveDoubt)
	}
	return append(must, MarkDoubt, MarkSettledByPerson)
}
