//go:build !race

package sim_test

// taskMutants lists what queues are known to do wrong, and what ours could.
func taskMutants() []mutant {
	return []mutant{
		{
			name: "sweep by blind update", plan: "task-do/workers", watch: "I6",
			edits: []edit{{
				"internal/engine/sweep.go", "	answer, err := c.writer.swap(ctx, &d.Change, swapTries)\n", `	if now, err := c.reader.get(ctx, r.ID); err == nil {
		d.Change.If, d.Change.IfDue = now.Token, false
	}
	answer, err := c.writer.swap(ctx, &d.Change, swapTries)
`,
			}},
		},
		{
			name: "worker completes by id only", plan: "task-do/workers", watch: "I7",
			edits: []edit{{
				"internal/engine/complete_many.go", "	answers, err := c.batching.swapAll(ctx, changes)\n", `	for i := range changes {
		if now, err := c.reader.get(ctx, changes[i].To.ID); err == nil {
			changes[i].If = now.Token
		}
	}
	answers, err := c.batching.swapAll(ctx, changes)
`,
			}},
		},
		{
			name: "purge of a live lease", plan: "leased/purger", watch: "I6p",
			edits: []edit{{"internal/sim/purge.go", " && r.purgeable {", " && len(w.rows) > 0 {"}},
		},
		{
			name: "requeue without fence", plan: "task-do/workers", watch: "I5",
			edits: []edit{
				{"internal/protocol/recover.go", "d.moveTo(StepRequeue, current, store.Token{State: store.Pending, Attempt: current.Attempt, Owner: e.Owner}", "d.moveTo(StepRequeue, current, store.Token{State: store.Pending, Attempt: current.Attempt, Owner: current.Owner}"},
				{"store/dequeue.go", "Attempt: waits.Attempt + 1, Owner: d.Owner}", "Attempt: max(waits.Attempt, 1), Owner: d.Owner}\n	if waits.Attempt > 0 {\n		to.Token.Owner = waits.Owner\n	}"},
			},
		},
		{
			name: "redrive of a caller's key", plan: "leased-keep/redriver", watch: "I6",
			edits: []edit{{"internal/protocol/queue.go", "current.State == store.Failed && e.Owned:", "current.State == store.Failed:"}},
		},
		{
			name: "redrive under a policy that allows no other attempt", plan: "task-hold/crashes", watch: "I6",
			edits: []edit{{"internal/protocol/queue.go", "current.State == store.InDoubt && e.Owned && e.Policy.runsAgain():", "current.State == store.InDoubt && e.Owned:"}},
		},
		{
			name: "redrive forgets the taint", plan: "task-do/crashes", watch: "I2",
			edits: []edit{{"internal/protocol/queue.go", "d.Change.To.Tainted = true // its", "d.Change.To.Tainted = current.Tainted && e.Step != StepRedrive // its"}},
		},
		{
			name: "batch neighbours mixed up", plan: "task-do/batch", watch: "I4",
			edits: []edit{{"internal/engine/complete_many.go", "if !answers[i].Applied(changes[i]) ||", "if !answers[0].Applied(changes[0]) ||"}},
		},
	}
}

// triedMutants lists what counting and giving up could do wrong.
func triedMutants() []mutant {
	return []mutant{
		{
			name: "lost claim given back while it runs", plan: "task-hold/overlap", watch: "I1",
			edits: []edit{{"internal/engine/dequeue.go", "if lost.run[r.ID] != r.Attempt {", "if r.Attempt > 0 {"}},
		},
		{
			name: "lost claim counted as a crash", plan: "task-tx/late", watch: "I15",
			edits: []edit{{"internal/engine/abandoned_claim.go", "		Outcome: c.interruption(op, claimed, claimed.Attempt, why),\n", ""}},
		},
		{
			name: "run although it has crashed too often", plan: "task-tx/crashes", watch: "I15",
			edits: []edit{{"internal/engine/conclude.go", "crashes >= o.retry.MaxCrashes", "crashes > o.retry.MaxCrashes"}},
		},
		{
			name: "errors not counted", plan: "task-tx/errors", watch: "I15",
			edits: []edit{{"internal/codec/progress.go", "		p.Errors++\n", "		p.Errors = 1\n"}},
		},
		{
			name: "delay ignored", plan: "task-tx/caller", watch: "I9",
			edits: []edit{
				{"internal/protocol/start.go", "		if current.Due > 0 {\n", "		if current.Due > 0 && current.State != store.Pending {\n"},
				{"internal/protocol/next.go", "d.Change.IfDue = name, current.Token, due", "d.Change.IfDue = name, current.Token, due && current.State != store.Pending"},
			},
		},
		{
			name: "cancelled as if nothing had happened", plan: "task-do/cancel", watch: "I2",
			edits: []edit{{"internal/protocol/queue.go", "case e.Step == StepCancel && current.Tainted:\n", "case e.Step == StepCancel && current.Tainted && e.Owned:\n"}},
		},
		{
			name: "given up as if nothing had happened", plan: "task-do/unknown", watch: "I2",
			edits: []edit{{"internal/protocol/conclude.go", "proven, answered := e.Proven || e.Cause == ByCrashes,", "proven, answered := true,"}},
		},
		{
			name: "what waits is purged", plan: "task-tx/purge", watch: "I13",
			edits: []edit{{"internal/protocol/next.go", "case s == store.Pending && input, e.Expire == 0:", "case e.Expire == 0:"}},
		},
		{
			name: "direct call leaves workers nothing to go on with", plan: "task-tx/caller", watch: "I13",
			edits: []edit{{"internal/engine/call.go", "	r.Input = c.storedInput\n", ""}},
		},
		{
			name: "cancelling taken for the receiver's word", plan: "task-keyed/cancel", watch: "I2",
			edits: []edit{
				{"internal/protocol/conclude.go", "e.Answered && e.Cause == ByError\n", "e.Answered\n"},
				{"internal/engine/report.go", "!snoozed && !cancelled && ", "!snoozed && (cancelled || !cancelled) && "},
			},
		},
	}
}
