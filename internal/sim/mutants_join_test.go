package sim_test

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
			name: "who comes too late to join is forgotten", plan: "hold/refused", watch: "deadlock",
			edits: []edit{{"internal/groupcommit/do.go", "more = g.flushBatch(context.Background(), b)\n", "more = g.flushBatch(context.Background(), b) && b.joinLimit == 0\n"}},
		},
		{
			name: "key that joins itself", plan: "heal/gather", watch: "batch",
			edits: []edit{{"internal/groupcommit/join.go", "	items := g.takeWaiting(rest)\n", "	clear(g.inflight)\n	items := g.takeWaiting(rest)\n"}},
		},
		{
			name: "claim of who gave up stays when its transaction had no answer", plan: "leased/gather", watch: "I14",
			edits: []edit{{"internal/engine/abandoned_claim.go", "		case err != nil, answer.Applied(claim) &&", "		case err == nil && answer.Applied(claim) &&"}},
		},
	}
}
