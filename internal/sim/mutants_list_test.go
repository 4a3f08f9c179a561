package sim_test

import "slices"

// mutants lists the mistakes. The first eight are those that idempotency code
// is known for; the others keep the remaining invariants awake.
func mutants() []mutant {
	return slices.Concat(knownMutants(), furtherMutants(), taskMutants(), triedMutants(), laneMutants(), gatherMutants(), memoryMutants(), batchMutants())
}

func knownMutants() []mutant {
	return []mutant{
		{
			name: "failed on an ambiguous commit", plan: "leased/faults", watch: "I2",
			edits: []edit{{
				"intx.go", `	d, now, err := a.c.certify(ctx, a.Record(), release)
`, `	now, err := a.c.get(ctx, a.call.id)
	failed := now
	failed.State, failed.Owner, failed.Outcome = store.Failed, newOwner(), encodeFailure(cause, 1<<10)
	if err == nil {
		_, err = a.c.swap(ctx, &store.Change{If: now.Token, To: failed}, 0)
	}
	var d decision
`,
			}},
		},
		{
			name: "complete without fence", plan: "atleastonce/faults", watch: "I7",
			edits: []edit{{"next.go", "if stands.Token != e.token && !settles {", "if stands.Token != e.token && !settles && e.step != stepSucceed {"}},
		},
		{
			name: "takeover without compare-and-swap", plan: "leased/faults", watch: "I9",
			edits: []edit{{"next.go", "d.change.IfDue = name, stands.Token, due", "d.change.IfDue = name, stands.Token, due && name != stepTakeover"}},
		},
		{
			name: "release by a zombie", plan: "leased/faults", watch: "I7",
			edits: []edit{{"next.go", "if stands.Token != e.token && !settles {", "if stands.Token != e.token && !settles && e.step != stepRelease {"}},
		},
		{
			name: "look, then run", plan: "heal/faults", watch: "I1",
			edits: []edit{{"next.go", "	case e.policy.runsAgain():\n		return true", "	case e.policy.runsAgain() || e.looked:\n		return true"}},
		},
		{
			name: "follower deletes", plan: "hold/faults", watch: "I1",
			edits: []edit{{
				"follow.go", "	if left <= 0 || !q.sit() {\n", `	if left <= 0 || !q.sit() {
		gone := stands
		gone.State, gone.Owner, gone.Expire = store.Pending, newOwner(), 1
		_, _ = q.c.swap(ctx, &store.Change{If: stands.Token, To: gone}, 1)
		_, _ = q.c.store.Purge(ctx, 1)
`,
			}},
		},
		{
			name: "success by row count", plan: "hold/replies", watch: "R3",
			edits: []edit{
				{"store/record.go", "s.Token == t }", "s.Token == t && s.Record == nil }"},
				{"internal/sim/rows.go", "		w.mark(MarkEcho)\n		return store.SwapResult{Token: c.To.Token}", "		return r.standing()"},
			},
		},
		{
			name: "told failed with the swap lost", plan: "leased-keep/replies", watch: "I2t",
			edits: []edit{{
				"finish.go", "	if d.say != sayTry {\n		return a.lost(", `	if d.say != sayTry && e.step == stepFail {
		return nil, decodeFailure(e.outcome)
	}
	if d.say != sayTry {
		return a.lost(`,
			}},
		},
	}
}

func furtherMutants() []mutant {
	return []mutant{
		{
			name: "ambiguous inline commit told as rolled back", plan: "inline/faults", watch: "I2t",
			edits: []edit{{"inline.go", "	case verdict == store.NotCommitted:\n", "	case verdict != store.Committed:\n"}},
		},
		{
			name: "takeover of a running lease", plan: "intx/faults", watch: "I9",
			edits: []edit{
				{"next.go", "	case stands.Due > 0:\n", "	case stands.Due > 0 && e.step != stepClaim:\n"},
				{"next.go", "d.change.IfDue = name, stands.Token, due", "d.change.IfDue = name, stands.Token, due && name != stepTakeover"},
			},
		},
		{
			name: "taint forgotten", plan: "atleastonce/replies", watch: "I2",
			edits: []edit{{"next.go", "if stands.Tainted && !e.policy.speaksForAll() {", "if stands.Tainted && e.policy == policyUnset {"}},
		},
		{
			name: "fence not raised", plan: "fenced/faults", watch: "I1",
			edits: []edit{{"attempt.go", "p.raise(a.ctx, a.call.scope, a.call.key, a.token.Attempt)", "error(nil)"}},
		},
		{
			name: "attempt not counted", plan: "leased/faults", watch: "I5",
			edits: []edit{{
				"next.go", "store.Token{State: store.InProgress, Attempt: stands.Attempt + 1, Owner: e.owner}",
				"store.Token{State: store.InProgress, Attempt: max(stands.Attempt, 1), Owner: e.owner}",
			}},
		},
		{
			name: "healing what is final", plan: "heal/faults", watch: "I6",
			edits: []edit{
				{"next.go", "	case stands.State.Final():\n		d.say = sayReplay", "	case stands.State == store.Absent:\n		d.say = sayReplay"},
				{"next.go", "	case !stands.State.Unfinished():\n", "	case stands.State == store.Pending:\n"},
			},
		},
		{
			name: "told ok with the swap lost", plan: "atleastonce/faults", watch: "I4",
			edits: []edit{{
				"finish.go", "	if d.say != sayTry {\n		return a.lost(", `	if d.say != sayTry && err == nil {
		return &Outcome{Record: a.succeeded(e.outcome)}, nil
	}
	if d.say != sayTry {
		return a.lost(`,
			}},
		},
		{
			name: "request not compared", plan: "leased/requests", watch: "I8",
			edits: []edit{{"next.go", "	if stands.State != store.Absent && d.isOther(stands, e) {\n		return false", "	if stands.State > store.Failed && d.isOther(stands, e) {\n		return false"}},
		},
		{
			name: "error taken for proof", plan: "hold/replies", watch: "I2t",
			edits: []edit{{"finish.go", "proven = marked || a.rolledBack()\n", "proven = true\n"}},
		},
		{
			name: "scope left out", plan: "leased/scopes", watch: "I10",
			edits: []edit{
				{"call.go", "store.NewID(o.def.name, scope.text, key)", "store.NewID(o.def.name, \"\", key)"},
				{"call.go", "|| r.Scope != c.scope.text ", ""},
			},
		},
		{
			name: "follower runs too", plan: "hold/faults", watch: "I11",
			edits: []edit{{"ask.go", "	if claimed {\n", "	if claimed || stands.State == store.InProgress {\n"}},
		},
		{
			name: "healed without evidence", plan: "heal/faults", watch: "I3",
			edits: []edit{{"heal.go", "if err != nil || !found {", "if err != nil || !found && stands.ID == (store.ID{}) {"}},
		},
		{
			name: "ambiguous commit told as ok", plan: "leased/faults", watch: "I3t",
			edits: []edit{{"intx.go", "		return verdict, a.unknownCommit(ctx, outcome, err)\n", "		a.settle(ctx, a.succeeded(outcome), nil)\n		return verdict, nil\n"}},
		},
		{
			name: "a refusal taken to speak for all", plan: "atleastonce/replies", watch: "I2k",
			edits: []edit{{"finish.go", " && (!now.Tainted || a.speaksForAll(err)) {", " {"}},
		},
		{
			name: "nobody takes over", plan: "keyed/faults", watch: "I12",
			edits: []edit{{"next.go", "	case e.policy.runsAgain():\n		return true", "	case e.policy == policyUnset:\n		return true"}},
		},
	}
}
