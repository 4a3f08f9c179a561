package sim

// sharedPlans lists the explorations in which the callers share a process and
// its batches, and those in which an engine answers retries from its cache.
func (m mode) sharedPlans() []Plan {
	faults := Budget{Lost: 1, Cancels: 1, Expiries: 1}
	require := []Mark{MarkCanceled, MarkClaimUndone, MarkArrived, MarkAlreadyApplied}
	switch m.name {
	case "inline":
		return []Plan{{
			Name: "aging", Callers: "x", Calls: 4, Again: true, Cached: true,
			Budget: Budget{CacheAges: 2, Purges: 1, Lost: 1}, Require: []Mark{MarkCacheHit, MarkCacheExpired, MarkPurged},
		}}
	case "hold":
		return []Plan{
			{Name: "together", Callers: "xx", Scopes: true, Shared: true, Budget: faults, Require: append(require, MarkBatched)},
			{
				Name: "crowd", Callers: "xxx", Scopes: true, Shared: true,
				Budget: Budget{Cancels: 1}, Require: []Mark{MarkBatched, MarkCanceled, MarkClaimUndone},
			},
			{
				Name: "gather", Callers: "xx", Scopes: true, Shared: true, Joinable: true,
				Budget:  Budget{Crashes: 1, Cancels: 1, Unknown: 1, Expiries: 1},
				Require: []Mark{MarkJoined, MarkJoinedTooLate, MarkJoinedLost, MarkCrash, MarkDoubt, MarkClaimUndone, MarkLateCommit, MarkLateAbort},
			},
			{
				Name: "refused", Callers: "xx", Scopes: true, Shared: true, Joinable: true,
				Budget: Budget{Aborts: 1, Cancels: 1, Lost: 1}, Require: []Mark{MarkJoined, MarkAborted, MarkBusy, MarkCanceled},
			},
		}
	case "leased":
		return []Plan{
			{
				Name: "together", Callers: "xx", Scopes: true, Shared: true, Sweepers: 1,
				Budget: Budget{Cancels: 1, Unknown: 1, Expiries: 1}, Require: []Mark{MarkCanceled, MarkClaimUndone},
			},
			{
				Name: "gather", Callers: "xxx", LateCallers: 1, Scopes: true, Shared: true, Joinable: true,
				Budget:  Budget{Cancels: 1, Unknown: 1},
				Require: []Mark{MarkJoined, MarkJoinedTooLate, MarkJoinedLost, MarkJoinedCanceled, MarkCanceled, MarkClaimUndone, MarkUnknownOK, MarkUnknownReleased},
			},
			{
				Name: "cached", Callers: "xx", Calls: 2, Again: true, Cached: true,
				Budget: Budget{Expiries: 1, Unknown: 1}, Require: []Mark{MarkCacheHit, MarkTakeover, MarkZombie, MarkUnknownOK},
			},
		}
	case "heal":
		faults.Crashes = 1
		return []Plan{
			{Name: "together", Callers: "xx", Shared: true, Budget: faults, Require: append(require, MarkHeal, MarkCrash)},
			{
				Name: "crowd", Callers: "xxx", Shared: true,
				Budget: Budget{Lost: 1}, Require: []Mark{MarkHeal, MarkReplay, MarkAlreadyApplied},
			},
			{
				Name: "gather", Callers: "xxx", Shared: true, Joinable: true,
				Budget: Budget{Unknown: 1}, Require: []Mark{MarkHeal, MarkReplay, MarkLateCommit, MarkLateAbort},
			},
		}
	case "task-tx", "task-do":
		return []Plan{{
			Name: "aging", Callers: "x", Calls: 4, Again: true, Redrivers: 1, Cached: true,
			Budget: Budget{CacheAges: 2, Refusals: 1}, Require: []Mark{MarkCacheHit, MarkCacheExpired, MarkFail, MarkRedrive},
		}}
	case "atleastonce":
		return []Plan{{
			Name: "cached", Callers: "xx", Calls: 2, Again: true, Sweepers: 1, Cached: true,
			Budget: Budget{Expiries: 1, Lost: 1}, Require: []Mark{MarkCacheHit, MarkRequeue, MarkTakeover, MarkArrived},
		}}
	default:
		return nil
	}
}
