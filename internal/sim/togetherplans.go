package sim

// togetherOf lists the explorations in which the callers are one process, so that
// their changes go to the store together, and those in which it answers repeats
// from memory, which gets too old.
func (m mode) togetherOf() []Plan {
	faults := Budget{Lost: 1, Leaves: 1, Expiries: 1}
	must := []Mark{MarkLeft, MarkUndone, MarkArrived, MarkEcho}
	switch m.name {
	case "inline":
		return []Plan{{
			Name: "aging", Callers: "x", Asks: 4, Again: true, Cached: true,
			Budget: Budget{Ages: 2, Purges: 1, Lost: 1}, Must: []Mark{MarkRemembered, MarkForgotten, MarkPurged},
		}}
	case "hold":
		return []Plan{
			{Name: "together", Callers: "xx", Scopes: true, Together: true, Budget: faults, Must: append(must, MarkFlush)},
			{
				Name: "crowd", Callers: "xxx", Scopes: true, Together: true,
				Budget: Budget{Leaves: 1}, Must: []Mark{MarkFlush, MarkLeft, MarkUndone},
			},
			{
				Name: "gather", Callers: "xx", Scopes: true, Together: true, Gathers: true,
				Budget: Budget{Crashes: 1, Leaves: 1, Unsure: 1, Expiries: 1},
				Must:   []Mark{MarkJoined, MarkMissed, MarkJoinedLost, MarkCrash, MarkDoubt, MarkUndone, MarkLateCommit, MarkLateAbort},
			},
			{
				Name: "refused", Callers: "xx", Scopes: true, Together: true, Gathers: true,
				Budget: Budget{Aborts: 1, Leaves: 1, Lost: 1}, Must: []Mark{MarkJoined, MarkAborted, MarkBusy, MarkLeft},
			},
		}
	case "leased":
		return []Plan{
			{
				Name: "together", Callers: "xx", Scopes: true, Together: true, Sweepers: 1,
				Budget: Budget{Leaves: 1, Unsure: 1, Expiries: 1}, Must: []Mark{MarkLeft, MarkUndone},
			},
			{
				Name: "gather", Callers: "xxx", Later: 1, Scopes: true, Together: true, Gathers: true,
				Budget: Budget{Leaves: 1, Unsure: 1},
				Must:   []Mark{MarkJoined, MarkMissed, MarkJoinedLost, MarkJoinedLeft, MarkLeft, MarkUndone, MarkUnsureOK, MarkUnsureNo},
			},
			{
				Name: "cached", Callers: "xx", Asks: 2, Again: true, Cached: true,
				Budget: Budget{Expiries: 1, Unsure: 1}, Must: []Mark{MarkRemembered, MarkTakeover, MarkZombie, MarkUnsureOK},
			},
		}
	case "heal":
		faults.Crashes = 1
		return []Plan{
			{Name: "together", Callers: "xx", Together: true, Budget: faults, Must: append(must, MarkHeal, MarkCrash)},
			{
				Name: "crowd", Callers: "xxx", Together: true,
				Budget: Budget{Lost: 1}, Must: []Mark{MarkHeal, MarkReplay, MarkEcho},
			},
			{
				Name: "gather", Callers: "xxx", Together: true, Gathers: true,
				Budget: Budget{Unsure: 1}, Must: []Mark{MarkHeal, MarkReplay, MarkLateCommit, MarkLateAbort},
			},
		}
	case "task-tx", "task-do":
		return []Plan{{
			Name: "aging", Callers: "x", Asks: 4, Again: true, Redrivers: 1, Cached: true,
			Budget: Budget{Ages: 2, Refusals: 1}, Must: []Mark{MarkRemembered, MarkForgotten, MarkFail, MarkRedrive},
		}}
	case "atleastonce":
		return []Plan{{
			Name: "cached", Callers: "xx", Asks: 2, Again: true, Sweepers: 1, Cached: true,
			Budget: Budget{Expiries: 1, Lost: 1}, Must: []Mark{MarkRemembered, MarkRequeue, MarkTakeover, MarkArrived},
		}}
	default:
		return nil
	}
}
