package sim

// taskPlans lists the explorations of a mode with keys that the system owns:
// competing workers and callers, retries, exhausted keys, and operators.
func taskPlans(m mode) []Plan {
	plans := append(m.queuePlans(), m.retryPlans()...)
	if m.receiverKind != inRecordsDB {
		return plans // what the receiver remembers is kept for longer than any record
	}
	return append(plans, Plan{
		Name: "joined", Callers: "x", Scopes: true, EnqueuesTx: true, Workers: 1,
		Budget:  Budget{Crashes: 1, Expiries: 1, Unknown: 1, Refusals: 1},
		Require: []Mark{MarkCrash, MarkRelease, MarkLateCommit, MarkLateAbort, MarkUnknownOK, MarkUnknownReleased, MarkTakeover},
	}, Plan{
		Name: "rivals", Callers: "xx", Scopes: true, EnqueuesTx: true,
		Budget: Budget{Crashes: 1, Expiries: 1, Unknown: 1}, Require: []Mark{MarkBusy, MarkTakeover, MarkZombie, MarkLateAbort},
	}, Plan{
		Name: "purge", Callers: "x", Queued: true, Workers: 1, Rounds: 2, Purgers: 1,
		Budget: Budget{Refusals: 1, Purges: 1, Delays: 1}, Require: []Mark{MarkPurged, MarkDelay},
	})
}

// queuePlans are about competing workers.
func (m mode) queuePlans() []Plan {
	return []Plan{
		{
			Name: "workers", Queued: true, Workers: 2, Sweepers: 1,
			Budget: Budget{Crashes: 1, Expiries: 2, Unknown: 1}, Require: m.requireWorkers(),
		},
		{
			Name: "batch", Queued: true, Scopes: true, Workers: 1, Claims: 2, Rounds: 2, Sweepers: 1, MaxCrashes: 1,
			Budget: Budget{Expiries: 1, Lost: 1}, Require: m.requireBatch(MarkArrived, MarkAlreadyApplied),
		},
		{
			Name: "two", Queued: true, Scopes: true, Workers: 2, Claims: 2, Sweepers: 1,
			Budget: Budget{Expiries: 1, Unknown: 1}, Require: m.requireBatch(),
		},
		{
			Name: "blind", Queued: true, Scopes: true, Workers: 2, Claims: 2, NoDequeue: true,
			Budget: Budget{Crashes: 1, Expiries: 1}, Require: m.requireBatch(MarkCrash),
		},
		{
			Name: "overlap", Queued: true, Scopes: true, Workers: 1, Rounds: 2, Dequeues: 2,
			Budget: Budget{Lost: 1}, Require: m.requireBatch(MarkArrived),
		},
		{
			// A late Dequeue claims a second record after the repeated call's record has ended.
			Name: "late", Queued: true, Scopes: true, Workers: 1, Rounds: 3, MaxCrashes: 1,
			Budget: Budget{Lost: 1}, Require: []Mark{MarkLostClaimReleased, MarkArrived},
		},
		{
			Name: "caller", Callers: "x", Enqueuers: 1, Workers: 1, Sweepers: 1,
			Budget:  Budget{Crashes: 1, Expiries: 1, Refusals: 1, Delays: 1},
			Require: []Mark{MarkQueued, MarkQueuedAlready, MarkCrash, MarkReplay, MarkFail},
		},
	}
}

// retryPlans are about retries and exhausted keys.
func (m mode) retryPlans() []Plan {
	return []Plan{
		{
			Name: "errors", Queued: true, Workers: 1, Rounds: 3, Redrivers: 1, Reschedulers: 1,
			Budget: Budget{Refusals: 2, Delays: 1}, Require: m.requireErrors(),
		},
		{
			Name: "unknown", Queued: true, Workers: 2, Sweepers: 1, MaxErrors: 1,
			Budget: Budget{Lost: 1, Expiries: 1}, Require: m.requireUnknown(),
		},
		{
			Name: "crashes", Queued: true, Workers: 2, Sweepers: 1, MaxCrashes: 1, Redrivers: 1,
			Budget: Budget{Crashes: 1, Expiries: 1, Refusals: 1}, Require: m.requireCrashes(),
		},
		{
			Name: "cancel", Queued: true, Workers: 1, Rounds: 2, Renewing: true, Cancellers: 1, Sweepers: 1,
			Budget:  Budget{Expiries: 1},
			Require: []Mark{MarkCancelWaiting, MarkCancelRunning, MarkLeaseLost, MarkRenewed},
		},
	}
}

// deepTaskPlans lists the long explorations of tasks, with more actors and
// faults at once.
func deepTaskPlans(m mode) []Plan {
	plans := []Plan{
		{
			Name: "long", Queued: true, Workers: 2, Rounds: 2, Sweepers: 1,
			Budget: Budget{Crashes: 1, Expiries: 2, Unknown: 1}, Require: m.requireWorkers(),
		},
		{
			Name: "pair", Queued: true, Scopes: true, Workers: 2, Dequeues: 2, Sweepers: 1,
			Budget: Budget{Lost: 1, Expiries: 1}, Require: m.requireBatch(MarkLostClaimReleased, MarkArrived),
		},
		{
			Name: "tries", Queued: true, Workers: 1, Rounds: 3, Redrivers: 1, Reschedulers: 1,
			Budget: Budget{Refusals: 2, Delays: 1, Lost: 1}, Require: m.requireErrors(),
		},
		{
			Name: "deaths", Queued: true, Workers: 2, Sweepers: 1, MaxCrashes: 1, MaxErrors: 1, Redrivers: 1,
			Budget: Budget{Crashes: 1, Expiries: 1, Refusals: 1, Lost: 1}, Require: m.requireCrashes(),
		},
		{
			Name: "stop", Queued: true, Workers: 1, Rounds: 2, Renewing: true, Cancellers: 1, Sweepers: 1,
			Budget: Budget{Expiries: 1, Refusals: 1, Delays: 1}, Require: []Mark{MarkCancelWaiting, MarkCancelRunning},
		},
		{
			Name: "anyone", Callers: "x", Enqueuers: 1, Workers: 1, Sweepers: 1,
			Budget:  Budget{Crashes: 1, Expiries: 1, Refusals: 1, Lost: 1, Delays: 1},
			Require: []Mark{MarkQueued, MarkQueuedAlready, MarkCrash, MarkArrived},
		},
	}
	for i := range plans {
		plans[i].Name, plans[i].Mode = m.name+"/"+plans[i].Name, m.name
	}
	return plans
}

// requireWorkers lists the marks of plans in which workers die or are late.
func (m mode) requireWorkers() []Mark {
	require := []Mark{MarkCrash, MarkReplay, MarkSettledByWorker}
	switch {
	case m.receiverKind == inRecordsDB:
		return append(require, MarkRequeue, MarkRolledBack, MarkLateCommit, MarkLateAbort, MarkCrashesExhausted)
	case m.receiverKind == keyed:
		return append(require, MarkRequeue, MarkSecondAnswer)
	case m.repeats:
		return append(require, MarkRequeue, MarkTakeover)
	default:
		return append(require, MarkDoubt, MarkSettle, MarkSettledByOperator)
	}
}

// requireBatch lists the marks of plans in which a worker takes several records
// at a time. An attempt that its transaction has ended is not ended in a batch.
func (m mode) requireBatch(more ...Mark) []Mark {
	require := append([]Mark{MarkSettledByWorker}, more...)
	if m.receiverKind != inRecordsDB {
		require = append(require, MarkCompletedTogether)
	}
	return require
}

// requireErrors lists the marks of plans with refusals. A receiver that
// remembers keys refuses for good.
func (m mode) requireErrors() []Mark {
	require := []Mark{MarkFail, MarkRedrive}
	if m.receiverKind != keyed {
		require = append(require, MarkRelease, MarkDelay, MarkErrorsExhausted)
	}
	return require
}

// requireUnknown lists the marks of an effect without a reply when there is no
// second attempt.
func (m mode) requireUnknown() []Mark {
	require := []Mark{MarkArrived, MarkAlreadyApplied}
	if m.receiverKind != inRecordsDB {
		require = append(require, MarkDoubt, MarkSettledByOperator)
	}
	return require
}

// requireCrashes lists the marks of plans in which a single crash exhausts the
// key.
func (m mode) requireCrashes() []Mark {
	require := []Mark{MarkCrash, MarkRedrive}
	if m.receiverKind == inRecordsDB {
		return append(require, MarkCrashesExhausted)
	}
	if m.runsAgain() {
		require = append(require, MarkRedriveDoubt)
	}
	return append(require, MarkDoubt, MarkSettledByOperator)
}
