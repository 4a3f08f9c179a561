package sim_test

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
			name: "batch without an answer told as in force", plan: "hold/together", watch: "I11",
			edits: []edit{{"internal/engine/swap.go", "	if tries == 1 || ctx.Err() != nil {\n		return answer, err\n", "	if tries != 1 {\n		return store.SwapResult{Token: change.To.Token}, nil\n"}},
		},
		{
			name: "memory filled before the commit", plan: "atleastonce/cached", watch: "I4",
			edits: []edit{{"internal/engine/complete.go", "	if serr := a.writeEnd(", `	if early := a.Record(); e.Step == protocol.StepSucceed {
		early.State, early.Outcome = store.Succeeded, e.Outcome
		a.c.cache.Put(&early, asked)
	}
	if serr := a.writeEnd(`}},
		},
	}
}
