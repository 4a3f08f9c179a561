package sim

import "github.com/semelgo/semel"

// Gate lists the explorations that every test run makes: each mode with two
// callers, and a sweeper, a healer or nobody else.
func Gate() []Plan {
	var plans []Plan
	for _, m := range modes() {
		of := gateOf(m)
		if m.retry {
			of = tasksOf(m)
		}
		of = append(of, m.togetherOf()...)
		for _, p := range of {
			p.Name, p.Mode = m.name+"/"+p.Name, m.name
			plans = append(plans, p)
		}
	}
	return plans
}

func gateOf(m mode) []Plan {
	replies := Budget{Expiries: 1, Lost: 1, Refusals: 1}
	if m.onError == semel.Keep && m.shape != shapeDo || m.shape == shapeBatch {
		replies.Aborts = 1 // which is nobody's answer, and must not be kept
	}
	plans := []Plan{
		{Name: "replies", Callers: "xx", Sweepers: 1, Budget: replies, Must: m.mustReplies(replies)},
		{
			Name: "requests", Callers: "xy", Sweepers: 1, Must: m.mustRequests(),
			Budget: Budget{Crashes: 1, Expiries: 1, Unsure: 1, Refusals: 1, Purges: 1},
		},
	}
	if m.shape.inline() {
		soft := Budget{Crashes: 1, Expiries: 2, Unsure: 1, Lost: 1, Refusals: 1}
		plans = append(plans, Plan{
			Name: "soft", Callers: "xx", Sweepers: 1, Soft: true, Budget: soft, Must: m.mustFaults(soft),
		})
	}
	plans = append(plans, m.servants()...)
	if m.onError == semel.Keep {
		return plans // without refusals there is nothing to keep
	}
	faults := Budget{Crashes: 1, Expiries: 2, Unsure: 1, Beats: 1}
	plans = append(plans,
		Plan{Name: "faults", Callers: "xx", Sweepers: 1, Budget: faults, Must: m.mustFaults(faults)},
		Plan{
			Name: "nobody", Callers: "xx", Must: []Mark{MarkCrash, MarkSettledByRetry},
			Budget: Budget{Crashes: 1, Expiries: 1, Unsure: 1, Lost: 1},
		},
		Plan{
			Name: "scopes", Callers: "xx", Scopes: true, Must: []Mark{MarkCrash},
			Budget: Budget{Crashes: 1, Expiries: 1, Unsure: 1},
		},
	)
	if m.shape.inline() || m.shape == shapeLeased {
		plans = append(plans, Plan{
			Name: "conflict", Callers: "xx", Must: []Mark{MarkConflict, MarkReplay, MarkCrash},
			Budget: Budget{Crashes: 1, Expiries: 1, Conflicts: 1},
		})
	}
	again := Budget{Expiries: 1, Unsure: 1, Lost: 1, Refusals: 1}
	plans = append(plans, Plan{
		Name: "again", Callers: "x", Asks: 2, Sweepers: 1, Budget: again, Must: m.mustAgain(),
	})
	if m.doubts {
		plans = append(plans, Plan{
			Name: "healer", Callers: "xx", Healers: 1, Must: m.mustHealer(),
			Budget: Budget{Crashes: 1, Expiries: 2, Lost: 1},
		})
	}
	return plans
}

// servants lists what a purger may come to, and a person who wants a caller's key
// to be tried again; and what a function leaves to do in its own transaction.
func (m mode) servants() []Plan {
	switch m.name {
	case "inline":
		return []Plan{{
			Name: "joined", Callers: "xx", Scopes: true, Joins: true,
			Budget: Budget{Crashes: 1, Unsure: 1, Refusals: 1}, Must: []Mark{MarkCrash, MarkBusy, MarkLateCommit, MarkLateAbort, MarkUnsureOK, MarkUnsureNo},
		}}
	case "leased":
		return []Plan{{
			Name: "purger", Callers: "xx", Purgers: 1, Budget: Budget{Crashes: 1, Refusals: 1, Purges: 1},
			Must: []Mark{MarkRelease, MarkPurged},
		}}
	case "leased-keep":
		return []Plan{{
			Name: "redriver", Callers: "x", Redrivers: 1, Budget: Budget{Refusals: 1}, Must: []Mark{MarkFail},
		}}
	default:
		return nil
	}
}

// Deep lists the explorations that take long: three callers, two of each, and
// one that asks three times.
func Deep() []Plan {
	var plans []Plan
	for _, m := range modes() {
		if m.retry {
			plans = append(plans, deepTasksOf(m)...)
			continue
		}
		faults := Budget{Crashes: 1, Expiries: 2, Unsure: 1}
		three := Plan{Name: "three", Callers: "xxx", Sweepers: 1, Budget: faults, Must: m.mustFaults(faults)}
		two := Plan{Name: "two", Callers: "xx", Sweepers: 2, Healers: 2, Budget: faults, Must: m.mustFaults(faults)}
		if !m.doubts {
			two.Healers = 0
		}
		tries := Budget{Expiries: 1, Unsure: 2, Lost: 1, Refusals: 2}
		again := Plan{Name: "thrice", Callers: "x", Asks: 3, Sweepers: 1, Budget: tries, Must: m.mustAgain()}
		for _, p := range []Plan{three, two, again} {
			p.Name, p.Mode = m.name+"/"+p.Name, m.name
			plans = append(plans, p)
		}
	}
	return plans
}

// mustFaults lists what crashes, expiries and commits without an answer lead to.
func (m mode) mustFaults(b Budget) []Mark {
	must := []Mark{MarkCrash, MarkReplay, MarkSettledByRetry}
	if b.Beats > 0 && !m.shape.inline() {
		must = append(must, MarkBeat)
	}
	switch {
	case m.shape.inline():
		must = append(must, MarkBusy, MarkVoid)
	case m.shape != shapeDo:
		must = append(must, MarkTakeover, MarkRequeue, MarkRelease, MarkZombie, MarkRolledBack)
	case m.doubts && !m.repeats:
		must = append(must, MarkDoubt, MarkSettle, MarkSettledByPerson)
	default:
		must = append(must, MarkTakeover, MarkRequeue)
	}
	if m.shape != shapeDo {
		must = append(must, MarkLateCommit, MarkLateAbort, MarkUnsureOK, MarkUnsureNo)
	}
	switch m.outside {
	case fenced:
		must = append(must, MarkFenceHeld)
	case keyed:
		must = append(must, MarkSecondAnswer)
	case inRecordsDB, plain:
	}
	return must
}

// mustRequests lists what a second request under the same key leads to, before
// and after the record of the first one is gone.
func (m mode) mustRequests() []Mark {
	must := []Mark{MarkMismatch, MarkCrash}
	if m.outside == inRecordsDB || m.onError == semel.Release {
		must = append(must, MarkPurged)
	}
	return must
}

// mustReplies lists what lost answers and refusals lead to.
func (m mode) mustReplies(b Budget) []Mark {
	must := []Mark{MarkFail, MarkReplay}
	if b.Aborts > 0 && m.shape != shapeDo {
		must = append(must, MarkAborted)
	}
	if m.shape.inline() {
		return must
	}
	must = append(must, MarkEcho, MarkArrived)
	if m.outside == fenced || m.outside == keyed || m.repeats {
		must = append(must, MarkGiveUp)
	}
	if m.onError == semel.Release && m.outside != keyed {
		must = append(must, MarkRelease)
	}
	if m.name == "heal" {
		must = append(must, MarkHeal)
	}
	return must
}

// mustAgain lists what a caller that asks again after it was told no leads to.
func (m mode) mustAgain() []Mark {
	must := []Mark{MarkFail, MarkReplay, MarkSettledByRetry}
	if !m.shape.inline() && m.outside != keyed && m.onError == semel.Release {
		must = append(must, MarkRelease)
	}
	return must
}

// mustHealer lists what a person who looks leads to.
func (m mode) mustHealer() []Mark {
	must := []Mark{MarkCrash, MarkEcho, MarkArrived}
	if !m.repeats {
		must = append(must, MarkDoubt, MarkResolve, MarkSettle, MarkSettledByPerson)
	}
	return must
}
