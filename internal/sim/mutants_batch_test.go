//go:build !race

package sim_test

// batchMutants lists what could be wrong with statements that are handed over, and
// with calls that are enqueued in a transaction.
func batchMutants() []mutant {
	return []mutant{
		{
			name: "batch without a reply reported as rolled back", plan: "batch/faults", watch: "I2t",
			edits: []edit{{"internal/engine/do_batch.go", "		case err != nil, verdict == store.Committed:\n", "		case err != nil:\n			return store.NotCommitted, err\n		case verdict == store.Committed:\n"}},
		},
		{
			name: "batch reported as committed although another record is current", plan: "batch/nobody", watch: "I3t",
			edits: []edit{{"internal/engine/do_batch.go", "		i.setBase(recordOf(answer))\n", "		if recordOf(answer).State == store.Pending {\n			return store.Committed, nil\n		}\n		i.setBase(recordOf(answer))\n"}},
		},
		{
			name: "batch whose record is written by itself", plan: "batch/faults", watch: "I3",
			edits: []edit{{"internal/engine/do_batch.go", "	return send(waiting, i.change, !i.call.op.optimistic)\n", `	if answer, err := i.c.writer.swap(ctx, &i.change, 1); err != nil || !answer.Applied(i.change) {
		return answer, store.NotCommitted, err
	}
	return send(waiting, i.change, !i.call.op.optimistic)
`}},
		},
		{
			name: "enqueued beside the transaction", plan: "task-tx/joined", watch: "I16",
			edits: []edit{{"internal/engine/enqueue.go", "e.swapTx(ctx, tx, []store.Change{q.change})", "e.store.Swap(ctx, []store.Change{q.change})"}},
		},
		{
			name: "enqueued although the record is busy", plan: "task-tx/rivals", watch: "I16",
			edits: []edit{{"internal/engine/enqueue.go", "		return false, &callerr.WaitError{After: protocol.RetryAfter(store.Record{})}\n", "		return true, nil\n"}},
		},
	}
}

// memoryMutants lists what memory could do wrong with time.
func memoryMutants() []mutant {
	return []mutant{
		{
			name: "memory that never ages", plan: "inline/aging", watch: "I17",
			edits: []edit{{"internal/cache/cache.go", "k.gone.Load() || clock.Until(k.until) <= 0 {", "k.gone.Load() {"}},
		},
		{
			name: "memory that each repeat renews", plan: "task-do/aging", watch: "I17",
			edits: []edit{{"internal/cache/cache.go", "	if !k.used.Load() { // an unnecessary write would slow other processors down", "	k.until = clock.Now().Add(1000 * time.Hour)\n	if !k.used.Load() { // a write"}},
		},
	}
}

// laneMutants lists what group commit and memory are known to do wrong, and what
// ours could.
func laneMutants() []mutant {
	return []mutant{
		{
			name: "batch matched by key only", plan: "heal/crowd", watch: "I11",
			edits: []edit{
				{"internal/engine/batching.go", "		Flush: l.swapAll, ", "		Flush: l.swapAll, Shared: true, "},
				{"internal/engine/writer.go", "		case answer.HasToken(d.Change.To.Token):\n", "		case !answer.Busy && answer.Record == nil:\n"},
			},
		},
		{
			name: "one key twice in a batch", plan: "heal/together", watch: "batch",
			edits: []edit{{"internal/groupcommit/batch.go", "	if _, inflight := g.inflight[k]; inflight {\n", "	if _, inflight := g.inflight[k]; inflight && g.config.MaxBatch == 1 {\n"}},
		},
		{
			name: "claim of a caller that gave up stays", plan: "hold/together", watch: "I14",
			edits: []edit{{"internal/engine/claim.go", "			q.abandonClaim(ctx, d.Change, *current, err)\n", ""}},
		},
		{
			name: "claim that arrives while it is given back stays", plan: "hold/crowd", watch: "I14",
			edits: []edit{{"internal/engine/unrecorded.go", "err != nil || now.Token != item.record.Token {", "err != nil || now.Token != item.from {"}},
		},
		{
			name: "batch without a reply reported as applied", plan: "hold/together", watch: "I11",
			edits: []edit{{"internal/engine/swap.go", "	if tries == 1 || ctx.Err() != nil {\n		return answer, err\n", "	if tries != 1 {\n		return store.SwapResult{Token: change.To.Token}, nil\n"}},
		},
		{
			name: "memory filled before the commit", plan: "atleastonce/cached", watch: "I4",
			edits: []edit{{"internal/engine/end.go", "	if serr := a.writeEnd(", `	if early := a.Record(); e.Step == protocol.StepSucceed {
		early.State, early.Outcome = store.Succeeded, e.Outcome
		a.c.cache.Put(&early, asked)
	}
	if serr := a.writeEnd(`}},
		},
	}
}

// gatherMutants lists what could be wrong with changes that join others which are being
// written.
func gatherMutants() []mutant {
	const gathers = "		swaps.FlushJoinable = g.SwapJoinable\n"
	return []mutant{
		{
			name: "answers before the commit", plan: "hold/gather", watch: "I11",
			edits: []edit{{"internal/engine/batching.go", gathers, `		swaps.FlushJoinable = func(ctx context.Context, came []store.Change, _ func() []store.Change) ([]store.SwapResult, error) {
			changes, answers := append([]store.Change(nil), came...), make([]store.SwapResult, len(came))
			for i := range changes {
				answers[i].Token = changes[i].To.Token
			}
			l.goRun("give up", func() {
				_, _ = g.SwapJoinable(ctx, changes, func() []store.Change { return nil })
			})
			return answers, nil
		}
`}},
		},
		{
			name: "what joined counts although its transaction failed", plan: "hold/gather", watch: "I4",
			edits: []edit{{"internal/engine/batching.go", gathers, `		swaps.FlushJoinable = func(ctx context.Context, came []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
			all := append([]store.Change(nil), came...)
			answers, err := g.SwapJoinable(ctx, came, func() []store.Change {
				joined := more()
				all = append(all, joined...)
				return joined
			})
			for i := len(answers); err != nil && len(all) > len(came) && i < len(all); i++ {
				answers = append(answers, store.SwapResult{Token: all[i].To.Token})
			}
			if len(answers) == len(all) {
				err = nil
			}
			return answers, err
		}
`}},
		},
		{
			name: "change that joins too late is lost", plan: "hold/refused", watch: "deadlock",
			edits: []edit{{"internal/groupcommit/do.go", "more = g.flushBatch(context.Background(), b)\n", "more = g.flushBatch(context.Background(), b) && b.joinLimit == 0\n"}},
		},
		{
			name: "key that joins itself", plan: "heal/gather", watch: "batch",
			edits: []edit{{"internal/groupcommit/join.go", "	items := g.takeWaiting(rest)\n", "	clear(g.inflight)\n	items := g.takeWaiting(rest)\n"}},
		},
		{
			name: "claim of a cancelled caller stays after a commit without a reply", plan: "leased/gather", watch: "I14",
			edits: []edit{{"internal/engine/abandoned_claim.go", "		case err != nil, answer.Applied(claim) &&", "		case err == nil && answer.Applied(claim) &&"}},
		},
	}
}
