package semel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// everyRecord is every kind of record that can stand, as far as the transition
// function can tell them apart, with the token (n, o) of attempt 2 where there
// is one.
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

// everyEvent is every wish, as far as the transition function can tell them
// apart.
func everyEvent() []event {
	var events []event
	steps := []step{
		stepCreate, stepReschedule, stepClaim, stepHeartbeat, stepTakeover, stepRequeue, stepSucceed, stepFail,
		stepRelease, stepDoubt, stepHeal, stepSettle, stepResolve, stepCancel, stepRedrive, stepInline, stepVoid, stepPurge,
	}
	for _, s := range steps {
		for bits := range 24 {
			for policy := policyUnset; policy <= policyAtLeastOnce; policy++ {
				for _, to := range targets(s) {
					e := event{
						step: s, to: to, owner: fresh, policy: policy,
						token:  store.Token{State: store.InProgress, Attempt: 2, Owner: mine},
						probed: bits&1 > 0, proven: bits&2 > 0, owned: bits&4 > 0,
						request: comparison(bits / 8),
					}
					events = append(events, e)
					if s == stepRequeue { // a sweeper's, beside the leader's own
						e.token = store.Token{}
						events = append(events, e)
					}
				}
			}
		}
	}
	return events
}

// comparison is a request that compares so with each record.
type comparison requestMatch

func (c comparison) compare(store.Record) requestMatch { return requestMatch(c) }

func targets(s step) []store.State {
	switch s {
	case stepInline:
		// Policies other than unset and Atomic never come this way.
		return []store.State{store.Succeeded, store.Failed, store.Pending}
	case stepVoid:
		return []store.State{store.Pending}
	case stepResolve:
		return append(store.States(), store.Absent)
	default:
		return []store.State{store.Absent}
	}
}

// possible leaves out what the engine never asks: DoTx runs only operations of
// policy unset or Atomic.
func possible(e event) bool {
	return e.step != stepInline && e.step != stepVoid || e.policy == policyUnset || e.policy == policyAtomic
}

// TestTransitionsMatchTheTable runs the transition function over every
// record and every wish: the changes it makes are the rows of the table, all of
// them and no other.
func TestTransitionsMatchTheTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, stands := range everyRecord() {
		for _, e := range everyEvent() {
			d := next(stands, e)
			if d.answer != answerApply || !possible(e) {
				continue
			}
			seen[edge(string(d.step), stands.State, d.change.To.State)] = true
		}
	}
	want := map[string]bool{}
	for _, row := range Transitions() {
		if row.Step != string(stepPurge) {
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
	for _, stands := range everyRecord() {
		for _, e := range everyEvent() {
			d := next(stands, e)
			if d.answer != answerApply || !possible(e) {
				continue
			}
			for _, broken := range brokenLaws(stands, e, d) {
				t.Errorf("%s on %+v asked as %+v: %s", d.step, stands.Token, e, broken)
			}
		}
	}
}

func brokenLaws(stands store.Record, e event, d decision) []string {
	var broken []string
	law := func(holds bool, text string) {
		if !holds {
			broken = append(broken, text)
		}
	}
	to, leader := d.change.To, e.token == stands.Token
	ownEnd := slices.Contains([]step{stepSucceed, stepFail, stepRelease, stepSettle, stepHeartbeat}, d.step) ||
		d.step == stepRequeue && leader ||
		d.step == stepDoubt && e.step != stepClaim && e.step != stepInline && e.step != stepVoid && e.step != stepRequeue
	law(d.change.If == stands.Token, "the change must name what stands")
	law(to.Attempt >= stands.Attempt, "the attempt goes back")
	law(ownEnd || to.Owner == fresh, "only a leader that ends its own attempt keeps its owner")
	law(!ownEnd || to.Owner == mine, "a leader that ends its attempt keeps its owner")
	law(to.Token != stands.Token || d.step == stepHeartbeat, "another write leaves the same token")
	law(stands.State != store.Succeeded, "Succeeded changes")
	law(stands.State != store.Failed || d.step == stepRedrive && e.owned, "a caller's Failed key changes")
	law(stands.State != store.InProgress || leader || d.change.IfDue || d.step == stepHeal || d.step == stepVoid,
		"somebody else changes a lease that may still run")
	law(to.State != store.Failed || provenFailed(stands, e, d), "Failed without proof")
	law(!to.State.Unfinished() || to.Expire == 0, "an unfinished record expires")
	law(d.step != stepRedrive || e.owned, "the redrive of a caller's key")
	law(d.step != stepRedrive || stands.State == store.Failed || e.policy.runsAgain(), "a redrive that the policy forbids")
	law(d.step != stepRedrive || stands.State == store.Failed || e.policy == policyAtomic || to.Tainted, "a redrive leaves no taint")
	law(d.step != stepTakeover || e.policy.runsAgain(), "a takeover that the policy forbids")
	law(d.step != stepTakeover || e.policy == policyAtomic && beganAtomic(stands.Owner) || to.Tainted, "a takeover leaves no taint")
	law(d.step != stepRequeue || e.policy.runsAgain(), "a requeue that the policy forbids")
	law(d.step != stepRequeue || e.policy == policyAtomic && beganAtomic(stands.Owner) || to.Tainted, "a requeue leaves no taint")
	law(!stands.Tainted || to.Tainted || d.step == stepResolve, "somebody takes the taint away who cannot know")
	law(!slices.Contains([]step{stepClaim, stepTakeover, stepInline, stepVoid}, d.step) ||
		stands.State == store.Absent || e.request.compare(stands) == sameRequest, "an attempt for another request")
	return broken
}

// provenFailed reports whether a Failed is proven: by the leader for its own
// attempt, and by policy or an untainted record for earlier ones; by a rollback; or
// by an operator.
func provenFailed(stands store.Record, e event, d decision) bool {
	switch d.step {
	case stepFail, stepSettle:
		return e.proven && (!stands.Tainted || e.policy.speaksForAll())
	case stepInline:
		return !stands.Tainted
	case stepCancel:
		return !stands.Tainted
	case stepResolve:
		return true
	default:
		return false
	}
}

// TestUnknownStateIsRejected: what this program does not know is neither
// absent nor free.
func TestUnknownStateIsRejected(t *testing.T) {
	t.Parallel()
	stands := store.Record{Token: store.Token{State: 17, Attempt: 1, Owner: theirs}}
	for _, e := range everyEvent() {
		if d := next(stands, e); d.answer == answerApply {
			t.Fatalf("%s changes a record of unknown state to %v", e.step, d.change.To.State)
		}
	}
}

const updateVariable = "SEMEL_UPDATE"

// TestTransitionTableGolden holds the table that documents, explorer and
// conformance suite read. SEMEL_UPDATE=1 writes it anew.
func TestTransitionTableGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("step\tfrom\tto\tby\tcondition\n")
	for _, r := range Transitions() {
		fmt.Fprintf(&b, "%s\t%v\t%v\t%s\t%s\n", r.Step, r.From, r.To, r.By, r.Condition)
	}
	golden(t, filepath.Join("docs", "transitions.tsv"), b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv(updateVariable) != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the code says; run the test with %s=1 and look at the difference\ngot:\n%s", path, updateVariable, got)
	}
}

// TestProtocolPage compares the diagram and the table in docs/protocol.md with
// Transitions. SEMEL_UPDATE=1 rewrites them.
func TestProtocolPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join("docs", "protocol.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated from Transitions: begin -->\n", "<!-- generated from Transitions: end -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	golden(t, path, before+begin+drawing()+"\n"+table()+end+after)
}

// drawing draws the states, one arrow for all steps between two of them.
func drawing() string {
	var b strings.Builder
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	var arrows []string
	labels := map[string][]string{}
	for _, r := range Transitions() {
		arrow := fmt.Sprintf("%s --> %s", node(r.From), node(r.To))
		if !slices.Contains(arrows, arrow) {
			arrows = append(arrows, arrow)
		}
		if !slices.Contains(labels[arrow], r.Step) {
			labels[arrow] = append(labels[arrow], r.Step)
		}
	}
	for _, a := range arrows {
		fmt.Fprintf(&b, "    %s : %s\n", a, strings.Join(labels[a], ", "))
	}
	b.WriteString("```\n")
	return b.String()
}

func node(s store.State) string {
	if s == store.Absent {
		return "[*]"
	}
	return s.String()
}

func table() string {
	var b strings.Builder
	b.WriteString("| step | from | to | by | condition |\n|---|---|---|---|---|\n")
	for _, r := range Transitions() {
		fmt.Fprintf(&b, "| %s | %v | %v | %s | %s |\n", r.Step, r.From, r.To, r.By, r.Condition)
	}
	return b.String()
}
