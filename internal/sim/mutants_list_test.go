//go:build !race

package sim_test

import "slices"

// mutants lists the mistakes. The first eight are those that idempotency code
// is known for; the others keep the remaining invariants awake.
func mutants() []mutant {
	return slices.Concat(knownMutants(), furtherMutants(), lastMutants(), taskMutants(), triedMutants(), laneMutants(), gatherMutants(), memoryMutants(), batchMutants())
}

func knownMutants() []mutant {
	return []mutant{
		{
			name: "failed on an ambiguous commit", plan: "leased/faults", watch: "I2",
			edits: []edit{{
				"internal/engine/tx_end.go", `	answer, err := a.c.writer.proveChange(ctx, &certificate)
`, `	now, err := a.c.reader.get(ctx, a.call.id)
	failed := now
	failed.State, failed.Owner, failed.Outcome = store.Failed, newOwner(), codec.EncodeFailure(cause, 1<<10)
	if err == nil {
		_, err = a.c.writer.swap(ctx, &store.Change{If: now.Token, To: failed}, 0)
	}
	answer := store.SwapResult{Token: certificate.To.Token}
`,
			}},
		},
		{
			name: "complete without fence", plan: "atleastonce/faults", watch: "I7",
			edits: []edit{{"internal/protocol/end.go", "if current.Token != e.Token && !settles {", "if current.Token != e.Token && !settles && e.Step != StepSucceed {"}},
		},
		{
			name: "takeover without compare-and-swap", plan: "leased/faults", watch: "I9",
			edits: []edit{{"internal/protocol/next.go", "d.Change.IfDue = name, current.Token, due", "d.Change.IfDue = name, current.Token, due && name != StepTakeover"}},
		},
		{
			name: "release by a zombie", plan: "leased/faults", watch: "I7",
			edits: []edit{{"internal/protocol/end.go", "if current.Token != e.Token && !settles {", "if current.Token != e.Token && !settles && e.Step != StepRelease {"}},
		},
		{
			name: "look, then run", plan: "heal/faults", watch: "I1",
			edits: []edit{{"internal/protocol/start.go", "	case e.Policy.runsAgain():\n		return true", "	case e.Policy.runsAgain() || e.Probed:\n		return true"}},
		},
		{
			name: "follower deletes", plan: "hold/faults", watch: "I1",
			edits: []edit{{
				"internal/engine/follow.go", "	if left <= 0 || !q.acquireWaiter() {\n", `	if left <= 0 || !q.acquireWaiter() {
		gone := current
		gone.State, gone.Owner, gone.Expire = store.Pending, newOwner(), 1
		_, _ = q.c.writer.swap(ctx, &store.Change{If: current.Token, To: gone}, 1)
		_, _ = q.c.store.Purge(ctx, 1)
`,
			}},
		},
		{
			name: "success by row count", plan: "hold/replies", watch: "R3",
			edits: []edit{
				{"store/record.go", "s.Token == t }", "s.Token == t && s.Record == nil }"},
				{"internal/sim/rows.go", "		w.mark(MarkAlreadyApplied)\n		return store.SwapResult{Token: c.To.Token}", "		return r.current()"},
			},
		},
		{
			name: "reported as failed although the swap was lost", plan: "leased-keep/replies", watch: "I2t",
			edits: []edit{{
				"internal/engine/end.go", "	if d.Answer != protocol.Apply {\n		return answerFenced(", `	if d.Answer != protocol.Apply && e.Step == protocol.StepFail {
		failed := a.Record()
		failed.State, failed.Outcome = store.Failed, e.Outcome
		return nil, a.endError(true, &failed, err)
	}
	if d.Answer != protocol.Apply {
		return answerFenced(`,
			}},
		},
	}
}

func furtherMutants() []mutant {
	return []mutant{
		{
			name: "unknown inline commit reported as rolled back", plan: "inline/faults", watch: "I2t",
			edits: []edit{{"internal/protocol/classify.go", "	case t.Verdict == store.NotCommitted:\n", "	case t.Verdict != store.Committed:\n"}},
		},
		{
			name: "takeover of a running lease", plan: "intx/faults", watch: "I9",
			edits: []edit{
				{"internal/protocol/start.go", "	case current.Due > 0:\n", "	case current.Due > 0 && e.Step != StepClaim:\n"},
				{"internal/protocol/next.go", "d.Change.IfDue = name, current.Token, due", "d.Change.IfDue = name, current.Token, due && name != StepTakeover"},
			},
		},
		{
			name: "taint forgotten", plan: "atleastonce/replies", watch: "I2",
			edits: []edit{
				{"internal/protocol/end.go", "if current.Tainted && !e.Policy.speaksForAll() {", "if current.Tainted && e.Policy == Unset {"},
				{"internal/protocol/conclude.go", "Verdict(proven, e.Tainted,", "Verdict(proven, false,"},
			},
		},
		{
			name: "fence not raised", plan: "fenced/faults", watch: "I1",
			edits: []edit{{"internal/engine/prepare.go", "p.raise(a.ctx, a.call.scope, a.call.key, a.token.Attempt)", "error(nil)"}},
		},
		{
			name: "attempt not counted", plan: "leased/faults", watch: "I5",
			edits: []edit{{
				"internal/protocol/start.go", "store.Token{State: store.InProgress, Attempt: current.Attempt + 1, Owner: e.Owner}",
				"store.Token{State: store.InProgress, Attempt: max(current.Attempt, 1), Owner: e.Owner}",
			}},
		},
		{
			name: "healing what is final", plan: "heal/faults", watch: "I6",
			edits: []edit{
				{"internal/protocol/recover.go", "	case current.State.Final():\n		d.Answer = Replay", "	case current.State == store.Absent:\n		d.Answer = Replay"},
				{"internal/protocol/recover.go", "	case !current.State.Unfinished():\n", "	case current.State == store.Pending:\n"},
			},
		},
		{
			name: "reported as ok although the swap was lost", plan: "atleastonce/faults", watch: "I4",
			edits: []edit{{
				"internal/engine/end.go", "	if d.Answer != protocol.Apply {\n		return answerFenced(", `	if d.Answer != protocol.Apply && err == nil {
		own := a.Record()
		own.State, own.Outcome = store.Succeeded, e.Outcome
		return &Outcome{Record: own}, nil
	}
	if d.Answer != protocol.Apply {
		return answerFenced(`,
			}},
		},
		{
			name: "request not compared", plan: "leased/requests", watch: "I8",
			edits: []edit{{"internal/protocol/start.go", "	if current.State != store.Absent && d.isMismatch(current, e) {\n		return false", "	if current.State > store.Failed && d.isMismatch(current, e) {\n		return false"}},
		},
	}
}

func lastMutants() []mutant {
	return []mutant{
		{
			name: "error taken for proof", plan: "hold/replies", watch: "I2t",
			edits: []edit{{"internal/engine/report.go", "proven = marked || rolledBack\n", "proven = true\n"}},
		},
		{
			name: "scope left out", plan: "leased/scopes", watch: "I10",
			edits: []edit{
				{"internal/engine/call.go", "store.NewID(o.def.name, scope.text, key)", "store.NewID(o.def.name, \"\", key)"},
				{"internal/engine/call.go", "|| r.Scope != c.scope.text ", ""},
			},
		},
		{
			name: "purged token used", plan: "hold/token", watch: "I17",
			edits: []edit{{"internal/protocol/start.go", "		if e.Issued {\n			d.Answer = Lost\n		}\n		return !e.Issued\n", "		return true\n"}},
		},
		{
			name: "old token used", plan: "inline/token", watch: "I18",
			edits: []edit{{"internal/protocol/start.go", "current.Age >= e.MaxAge", "current.Age < 0"}},
		},
		{
			name: "follower runs too", plan: "hold/faults", watch: "I11",
			edits: []edit{{"internal/engine/claim.go", "	if claimed {\n", "	if claimed || current.State == store.InProgress {\n"}},
		},
		{
			name: "healed without evidence", plan: "heal/faults", watch: "I3",
			edits: []edit{{"internal/engine/conclude.go", "if err != nil || !found {", "if err != nil || !found && current.ID == (store.ID{}) {"}},
		},
		{
			name: "unknown commit reported as ok", plan: "leased/faults", watch: "I3t",
			edits: []edit{{"internal/engine/in_tx.go", "a.unknownCommit(ctx, change, err), err)", "txEnd{current: recordAfter(*change, a.Record())}, nil)"}},
		},
		{
			name: "a refusal taken to speak for all", plan: "atleastonce/replies", watch: "I2k",
			edits: []edit{{"internal/engine/report.go", "protocol.Verdict(proven, now.Tainted,", "protocol.Verdict(proven, false,"}},
		},
		{
			name: "an expired lease is never taken over", plan: "keyed/faults", watch: "I12",
			edits: []edit{{"internal/protocol/start.go", "	case e.Policy.runsAgain():\n		return true", "	case e.Policy == Unset:\n		return true"}},
		},
	}
}
