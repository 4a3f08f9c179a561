package protocol

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// everyRecord returns every kind of record that the transition function can tell
// apart. Stored records are of attempt 2, and of one of two owners.
func everyRecord() []store.Record {
	records := []store.Record{{}}
	for _, s := range store.States() {
		for _, due := range []time.Duration{-1, 1} {
			for _, tainted := range []bool{false, true} {
				for _, owner := range []uint64{mine, theirs} {
					r := store.Record{Due: due, Tainted: tainted}
					r.Token = store.Token{State: s, Attempt: 2, Owner: owner}
					records = append(records, r)
				}
			}
		}
	}
	return records
}

const (
	mine   = 7
	theirs = 8
	fresh  = 9
)

// everyEvent returns every event that the transition function can tell apart.
func everyEvent() []Event {
	var events []Event
	steps := []Step{
		StepCreate, StepReschedule, StepClaim, StepHeartbeat, StepTakeover, StepRequeue, StepSucceed, StepFail,
		StepRelease, StepDoubt, StepHeal, StepSettle, StepResolve, StepCancel, StepRedrive, StepInline, StepVoid, StepPurge,
	}
	for _, s := range steps {
		for bits := range 24 {
			for policy := Unset; policy <= AtLeastOnce; policy++ {
				for _, to := range targets(s) {
					e := Event{
						Step: s, To: to, Owner: fresh, Policy: policy,
						Token:  store.Token{State: store.InProgress, Attempt: 2, Owner: mine},
						Probed: bits&1 > 0, Proven: bits&2 > 0, Owned: bits&4 > 0,
						Request: comparison(bits / 8),
					}
					events = append(events, e)
					if s == StepRequeue { // the sweeper's, besides the leader's own
						e.Token = store.Token{}
						events = append(events, e)
					}
				}
			}
		}
	}
	return events
}

// comparison is a request with the same match for each record.
type comparison RequestMatch

func (c comparison) Compare(store.Record) RequestMatch { return RequestMatch(c) }

func targets(s Step) []store.State {
	switch s {
	case StepInline:
		// Only operations with policy Unset or Atomic run inline.
		return []store.State{store.Succeeded, store.Failed, store.Pending}
	case StepVoid:
		return []store.State{store.Pending}
	case StepResolve:
		return append(store.States(), store.Absent)
	default:
		return []store.State{store.Absent}
	}
}

// possible reports whether the engine can request the event: DoTx runs only
// operations with policy Unset or Atomic.
func possible(e Event) bool {
	return e.Step != StepInline && e.Step != StepVoid || e.Policy == Unset || e.Policy == Atomic
}

// TestTransitionsMatchTheTable applies every event to every record. The changes must
// be exactly the rows of the table.
func TestTransitionsMatchTheTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, current := range everyRecord() {
		for _, e := range everyEvent() {
			d := Next(current, e)
			if d.Answer != Apply || !possible(e) {
				continue
			}
			seen[edge(string(d.Step), current.State, d.Change.To.State)] = true
		}
	}
	want := map[string]bool{}
	for _, row := range Transitions() {
		if row.Step != string(StepPurge) {
			want[edge(row.Step, row.From, row.To)] = true
		}
	}
	for e := range seen {
		if !want[e] {
			t.Errorf("the function makes %q, which is not in the table", e)
		}
	}
	for e := range want {
		if !seen[e] {
			t.Errorf("the table has %q, which the function never makes", e)
		}
	}
}

func edge(name string, from, to store.State) string {
	return fmt.Sprintf("%s: %v → %v", name, from, to)
}

// TestEveryChangeKeepsTheInvariants checks the invariants over every record and
// every event.
func TestEveryChangeKeepsTheInvariants(t *testing.T) {
	t.Parallel()
	for _, current := range everyRecord() {
		for _, e := range everyEvent() {
			d := Next(current, e)
			if d.Answer != Apply || !possible(e) {
				continue
			}
			for _, broken := range brokenLaws(current, e, d) {
				t.Errorf("%s of %+v by %+v: %s", d.Step, current.Token, e, broken)
			}
		}
	}
}

func brokenLaws(current store.Record, e Event, d Decision) []string {
	var broken []string
	law := func(holds bool, text string) {
		if !holds {
			broken = append(broken, text)
		}
	}
	to, leader := d.Change.To, e.Token == current.Token
	ownEnd := slices.Contains([]Step{StepSucceed, StepFail, StepRelease, StepSettle, StepHeartbeat}, d.Step) ||
		d.Step == StepRequeue && leader ||
		d.Step == StepDoubt && e.Step != StepClaim && e.Step != StepInline && e.Step != StepVoid && e.Step != StepRequeue
	law(d.Change.If == current.Token, "the change must name the current token")
	law(to.Attempt >= current.Attempt, "the attempt goes back")
	law(ownEnd || to.Owner == fresh, "only a leader that ends its own attempt keeps its owner")
	law(!ownEnd || to.Owner == mine, "a leader that ends its attempt keeps its owner")
	law(to.Token != current.Token || d.Step == StepHeartbeat, "another write leaves the same token")
	law(current.State != store.Succeeded, "Succeeded changes")
	law(current.State != store.Failed || d.Step == StepRedrive && e.Owned, "a caller's Failed key changes")
	law(current.State != store.InProgress || leader || d.Change.IfDue || d.Step == StepHeal || d.Step == StepVoid,
		"another caller ends a lease that may not have expired")
	law(to.State != store.Failed || provenFailed(current, e, d), "Failed without proof")
	law(!to.State.Unfinished() || to.Expire == 0, "an unfinished record expires")
	law(d.Step != StepRedrive || e.Owned, "the redrive of a caller's key")
	law(d.Step != StepRedrive || current.State == store.Failed || e.Policy.runsAgain(), "a redrive that the policy forbids")
	law(d.Step != StepRedrive || current.State == store.Failed || e.Policy == Atomic || to.Tainted, "a redrive leaves no taint")
	law(d.Step != StepTakeover || e.Policy.runsAgain(), "a takeover that the policy forbids")
	law(d.Step != StepTakeover || e.Policy == Atomic && beganAtomic(current.Owner) || to.Tainted, "a takeover leaves no taint")
	law(d.Step != StepRequeue || e.Policy.runsAgain(), "a requeue that the policy forbids")
	law(d.Step != StepRequeue || e.Policy == Atomic && beganAtomic(current.Owner) || to.Tainted, "a requeue leaves no taint")
	law(!current.Tainted || to.Tainted || d.Step == StepResolve, "the taint is removed without an operator's decision")
	law(!slices.Contains([]Step{StepClaim, StepTakeover, StepInline, StepVoid}, d.Step) ||
		current.State == store.Absent || e.Request.Compare(current) == SameRequest, "an attempt for another request")
	return broken
}

// provenFailed reports whether a Failed is proven: by the leader for its own
// attempt, and by policy or an untainted record for earlier ones; by a rollback; or
// by an operator.
func provenFailed(current store.Record, e Event, d Decision) bool {
	switch d.Step {
	case StepFail, StepSettle:
		return e.Proven && (!current.Tainted || e.Policy.speaksForAll())
	case StepInline:
		return !current.Tainted
	case StepCancel:
		return !current.Tainted
	case StepResolve:
		return true
	default:
		return false
	}
}

// TestUnknownStateIsRejected: a record in a state of a newer version must not count
// as absent.
func TestUnknownStateIsRejected(t *testing.T) {
	t.Parallel()
	current := store.Record{Token: store.Token{State: 17, Attempt: 1, Owner: theirs}}
	for _, e := range everyEvent() {
		if d := Next(current, e); d.Answer == Apply {
			t.Fatalf("%s changes a record of unknown state to %v", e.Step, d.Change.To.State)
		}
	}
}

// TestStoresClaimAsTheProtocolDoes: the claim of a Dequeuer is the claim of the
// transition function, under every policy. No store has a rule of its own.
func TestStoresClaimAsTheProtocolDoes(t *testing.T) {
	t.Parallel()
	d := store.Dequeue{Operation: "op", Limit: 1, Owner: fresh, Lease: time.Minute}
	for policy := Unset; policy <= AtLeastOnce; policy++ {
		for _, r := range everyRecord() {
			if r.State != store.Pending || r.Due > 0 {
				continue
			}
			r.Operation, r.Scope, r.Key, r.Fingerprint, r.Priority = "op", "scope", "key", []byte("f"), 3
			r.Input, r.Outcome, r.Expire = []byte("in"), []byte("p{}"), time.Hour
			want := Next(r, ClaimQueued(r, d.Owner, policy, d.Lease))
			if diff := cmp.Diff(want.Change, d.Claim(r)); want.Step != StepClaim || diff != "" {
				t.Errorf("%+v: the claim of a store is not the protocol's %q (-protocol +store):\n%s", r.Token, want.Step, diff)
			}
		}
	}
}

// TestIssuedRecords: an attempt on an issued record never creates it, and starts on no
// Pending record that is too old, unless an earlier attempt may have had an effect. A
// voided write is ruled out at any age.
func TestIssuedRecords(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	record := func(s store.State, age time.Duration, tainted bool) (r store.Record) {
		r.State, r.Attempt, r.Owner, r.Age, r.Tainted = s, 1, theirs, age, tainted
		return r
	}
	for name, tt := range map[string]struct {
		current store.Record
		step    Step
		policy  Policy
		want    Answer
	}{
		"absent":                 {store.Record{}, StepClaim, Hold, Lost},
		"absent, inline":         {store.Record{}, StepInline, Atomic, Lost},
		"absent, void":           {store.Record{}, StepVoid, Atomic, Lost},
		"in time":                {record(store.Pending, limit-1, false), StepClaim, Hold, Apply},
		"in time, inline":        {record(store.Pending, limit-1, false), StepInline, Atomic, Apply},
		"too old":                {record(store.Pending, limit, false), StepClaim, Hold, Expired},
		"too old, inline":        {record(store.Pending, limit, false), StepInline, Atomic, Expired},
		"too old, void":          {record(store.Pending, limit, false), StepVoid, Atomic, Apply},
		"too old, tainted":       {record(store.Pending, limit, true), StepClaim, AtLeastOnce, Apply},
		"too old, lease expired": {record(store.InProgress, limit, false), StepClaim, AtLeastOnce, Apply},
		"too old, succeeded":     {record(store.Succeeded, limit, false), StepClaim, Hold, Replay},
		"too old, failed":        {record(store.Failed, limit, false), StepInline, Atomic, Replay},
		"too old, in doubt":      {record(store.InDoubt, limit, false), StepClaim, Hold, InDoubt},
		"too old, cancelled":     {record(store.Pending, limit, false), StepCancel, Hold, Apply},
	} {
		e := Event{Step: tt.step, To: store.Succeeded, Owner: fresh, Policy: tt.policy, Issued: true, MaxAge: limit}
		if tt.step == StepVoid {
			e.To = store.Pending
		}
		check.Equal(t, Next(tt.current, e).Answer, tt.want, "%s: got answer", name)
	}
}
