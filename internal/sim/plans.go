package sim

import "github.com/semelgo/semel"

// Gate lists the explorations of every test run: each mode with two callers,
// and a sweeper, an operator or no other actor.
func Gate() []Plan {
	var plans []Plan
	for _, m := range modes() {
		of := gatePlans(m)
		if m.retry {
			of = taskPlans(m)
		}
		of = append(of, m.sharedPlans()...)
		for _, p := range of {
			p.Name, p.Mode = m.name+"/"+p.Name, m.name
			plans = append(plans, p)
		}
	}
	return plans
}

func gatePlans(m mode) []Plan {
	replies := Budget{Expiries: 1, Lost: 1, Refusals: 1}
	if m.onError == semel.Keep && m.shape != shapeDo || m.shape == shapeBatch {
		replies.Aborts = 1 // an abort is no failure of the operation, and must not be stored
	}
	plans := []Plan{
		{Name: "replies", Callers: "xx", Sweepers: 1, Budget: replies, Require: m.requireReplies(replies)},
		{
			Name: "requests", Callers: "xy", Sweepers: 1, Require: m.requireRequests(),
			Budget: Budget{Crashes: 1, Expiries: 1, Unknown: 1, Refusals: 1, Purges: 1},
		},
	}
	if m.shape.inline() {
		soft := Budget{Crashes: 1, Expiries: 2, Unknown: 1, Lost: 1, Refusals: 1}
		plans = append(plans, Plan{
			Name: "soft", Callers: "xx", Sweepers: 1, Soft: true, Budget: soft, Require: m.requireFaults(soft),
		})
	}
	plans = append(plans, m.taskRoles()...)
	plans = append(plans, m.tokenPlans()...)
	if m.onError == semel.Keep {
		return plans // without refusals there is nothing to keep
	}
	faults := Budget{Crashes: 1, Expiries: 2, Unknown: 1, Renewals: 1}
	plans = append(plans,
		Plan{Name: "faults", Callers: "xx", Sweepers: 1, Budget: faults, Require: m.requireFaults(faults)},
		Plan{
			Name: "nobody", Callers: "xx", Require: []Mark{MarkCrash, MarkSettledByRetry},
			Budget: Budget{Crashes: 1, Expiries: 1, Unknown: 1, Lost: 1},
		},
		Plan{
			Name: "scopes", Callers: "xx", Scopes: true, Require: []Mark{MarkCrash},
			Budget: Budget{Crashes: 1, Expiries: 1, Unknown: 1},
		},
	)
	if m.shape.inline() || m.shape == shapeLeased {
		plans = append(plans, Plan{
			Name: "conflict", Callers: "xx", Require: []Mark{MarkConflict, MarkReplay, MarkCrash},
			Budget: Budget{Crashes: 1, Expiries: 1, Conflicts: 1},
		})
	}
	again := Budget{Expiries: 1, Unknown: 1, Lost: 1, Refusals: 1}
	plans = append(plans, Plan{
		Name: "again", Callers: "x", Calls: 2, Sweepers: 1, Budget: again, Require: m.requireAgain(),
	})
	if m.doubts {
		plans = append(plans, Plan{
			Name: "healer", Callers: "xx", Healers: 1, Require: m.requireHealer(),
			Budget: Budget{Crashes: 1, Expiries: 2, Lost: 1},
		})
	}
	return plans
}

// taskRoles lists plans with a purger, with the redrive of a caller's key, and
// with a call that a function enqueues in its transaction.
func (m mode) taskRoles() []Plan {
	switch m.name {
	case "inline":
		return []Plan{{
			Name: "joined", Callers: "xx", Scopes: true, EnqueuesTx: true,
			Budget: Budget{Crashes: 1, Unknown: 1, Refusals: 1}, Require: []Mark{MarkCrash, MarkBusy, MarkLateCommit, MarkLateAbort, MarkUnknownOK, MarkUnknownReleased},
		}}
	case "leased":
		return []Plan{{
			Name: "purger", Callers: "xx", Purgers: 1, Budget: Budget{Crashes: 1, Refusals: 1, Purges: 1},
			Require: []Mark{MarkRelease, MarkPurged},
		}}
	case "leased-keep":
		return []Plan{{
			Name: "redriver", Callers: "x", Redrivers: 1, Budget: Budget{Refusals: 1}, Require: []Mark{MarkFail},
		}}
	default:
		return nil
	}
}

// tokenPlans lists explorations in which callers use a one-time token.
func (m mode) tokenPlans() []Plan {
	require := []Mark{MarkTokenUnknown, MarkTokenExpired, MarkReplay, MarkCrash, MarkPurged}
	switch m.name {
	case "inline":
	case "leased", "atleastonce":
		require = append(require, MarkTakeover, MarkTokenLate, MarkRelease)
	case "hold":
		require = append(require, MarkDoubt, MarkRelease)
	default:
		return nil
	}
	return []Plan{{
		Name: "token", Callers: "xx", Issued: true, Require: require,
		Budget: Budget{Crashes: 1, Expiries: 1, Unknown: 1, Refusals: 1, Purges: 1, Tokens: 1},
	}}
}

// Deep lists the explorations that take long: three callers, two of each, and
// one that sends its request three times.
func Deep() []Plan {
	var plans []Plan
	for _, m := range modes() {
		if m.retry {
			plans = append(plans, deepTaskPlans(m)...)
			continue
		}
		faults := Budget{Crashes: 1, Expiries: 2, Unknown: 1}
		three := Plan{Name: "three", Callers: "xxx", Sweepers: 1, Budget: faults, Require: m.requireFaults(faults)}
		two := Plan{Name: "two", Callers: "xx", Sweepers: 2, Healers: 2, Budget: faults, Require: m.requireFaults(faults)}
		if !m.doubts {
			two.Healers = 0
		}
		tries := Budget{Expiries: 1, Unknown: 2, Lost: 1, Refusals: 2}
		again := Plan{Name: "thrice", Callers: "x", Calls: 3, Sweepers: 1, Budget: tries, Require: m.requireAgain()}
		for _, p := range []Plan{three, two, again} {
			p.Name, p.Mode = m.name+"/"+p.Name, m.name
			plans = append(plans, p)
		}
	}
	return plans
}

// requireFaults lists the marks of crashes, expiries and unknown commits.
func (m mode) requireFaults(b Budget) []Mark {
	require := []Mark{MarkCrash, MarkReplay, MarkSettledByRetry}
	if b.Renewals > 0 && !m.shape.inline() {
		require = append(require, MarkRenewed)
	}
	switch {
	case m.shape.inline():
		require = append(require, MarkBusy, MarkVoid)
	case m.shape != shapeDo:
		require = append(require, MarkTakeover, MarkRequeue, MarkRelease, MarkZombie, MarkRolledBack)
	case m.doubts && !m.repeats:
		require = append(require, MarkDoubt, MarkSettle, MarkSettledByOperator)
	default:
		require = append(require, MarkTakeover, MarkRequeue)
	}
	if m.shape != shapeDo {
		require = append(require, MarkLateCommit, MarkLateAbort, MarkUnknownOK, MarkUnknownReleased)
	}
	switch m.receiverKind {
	case fenced:
		require = append(require, MarkFenceHeld)
	case keyed:
		require = append(require, MarkSecondAnswer)
	case inRecordsDB, plain:
	}
	return require
}

// requireRequests lists the marks of a second request under the same key,
// before and after the purge of the first record.
func (m mode) requireRequests() []Mark {
	require := []Mark{MarkMismatch, MarkCrash}
	if m.receiverKind == inRecordsDB || m.onError == semel.Release {
		require = append(require, MarkPurged)
	}
	return require
}

// requireReplies lists the marks of lost replies and refusals.
func (m mode) requireReplies(b Budget) []Mark {
	require := []Mark{MarkFail, MarkReplay}
	if b.Aborts > 0 && m.shape != shapeDo {
		require = append(require, MarkAborted)
	}
	if m.shape.inline() {
		return require
	}
	require = append(require, MarkAlreadyApplied, MarkArrived)
	if m.receiverKind == fenced || m.receiverKind == keyed || m.repeats {
		require = append(require, MarkReleasedTainted)
	}
	if m.onError == semel.Release && m.receiverKind != keyed {
		require = append(require, MarkRelease)
	}
	if m.name == "heal" {
		require = append(require, MarkHeal)
	}
	return require
}

// requireAgain lists the marks of a caller that retries after a failure.
func (m mode) requireAgain() []Mark {
	require := []Mark{MarkFail, MarkReplay, MarkSettledByRetry}
	if !m.shape.inline() && m.receiverKind != keyed && m.onError == semel.Release {
		require = append(require, MarkRelease)
	}
	return require
}

// requireHealer lists the marks of plans with a healer.
func (m mode) requireHealer() []Mark {
	require := []Mark{MarkCrash, MarkAlreadyApplied, MarkArrived}
	if !m.repeats {
		require = append(require, MarkDoubt, MarkResolve, MarkSettle, MarkSettledByOperator)
	}
	return require
}
