package sim_test

// batchMutants lists what could be wrong with statements that are handed over, and
// with calls that are enqueued in a transaction.
func batchMutants() []mutant {
	return []mutant{
		{
			name: "batch without an answer told as rolled back", plan: "batch/faults", watch: "I2t",
			edits: []edit{{"internal/engine/run_batch.go", "		case err != nil, verdict == store.Committed:\n", "		case err != nil:\n			return store.NotCommitted, err\n		case verdict == store.Committed:\n"}},
		},
		{
			name: "batch told as done although something else stands", plan: "batch/nobody", watch: "I3t",
			edits: []edit{{"internal/engine/run_batch.go", "		i.setBase(recordOf(answer))\n", "		if recordOf(answer).State == store.Pending {\n			return store.Committed, nil\n		}\n		i.setBase(recordOf(answer))\n"}},
		},
		{
			name: "batch whose record is written by itself", plan: "batch/faults", watch: "I3",
			edits: []edit{{"internal/engine/run_batch.go", "	return send(waiting, i.change, !i.call.op.optimistic)\n", `	if answer, err := i.c.writer.swap(ctx, &i.change, 1); err != nil || !answer.Applied(i.change) {
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
