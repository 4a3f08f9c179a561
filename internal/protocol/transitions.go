package protocol

import "github.com/semelgo/semel/store"

// Transition is one row of the protocol's table: a step that changes a record, the
// caller that may take it, and the condition that must hold.
type Transition struct {
	Step      string
	From, To  store.State
	By        string
	Condition string
}

// Step is a row of the table.
type Step string

// The steps.
const (
	// StepCreate adds a Pending record without running it.
	StepCreate Step = "create"
	// StepReschedule changes when a Pending record is due.
	StepReschedule Step = "reschedule"
	// StepClaim starts an attempt.
	StepClaim Step = "claim"
	// StepHeartbeat renews the lease of a running attempt.
	StepHeartbeat Step = "heartbeat"
	// StepTakeover starts an attempt after the lease of the last one has expired.
	StepTakeover Step = "takeover"
	// StepRequeue makes the record of an attempt with an unknown effect Pending again.
	StepRequeue Step = "requeue"
	// StepSucceed records a result.
	StepSucceed Step = "succeed"
	// StepFail records a failure with proof that no attempt committed.
	StepFail Step = "fail"
	// StepRelease makes the record of an attempt that did not commit Pending again.
	StepRelease Step = "release"
	// StepDoubt records that the effect is unknown and that no attempt may follow.
	StepDoubt Step = "doubt"
	// StepHeal records an effect that a probe has found.
	StepHeal Step = "heal"
	// StepSettle is the late end of an attempt whose doubt another caller has recorded.
	StepSettle Step = "settle"
	// StepResolve is an operator's decision about a record in doubt.
	StepResolve Step = "resolve"
	// StepCancel ends a Pending record without running it.
	StepCancel Step = "cancel"
	// StepRedrive makes a dead letter Pending again, as an operator decides.
	StepRedrive Step = "redrive"
	// StepInline is a whole attempt in one transaction.
	StepInline Step = "inline"
	// StepVoid keeps a write whose reply was lost from being applied later.
	StepVoid Step = "void"
	// StepPurge deletes a record after its retention. Only stores purge.
	StepPurge Step = "purge"
)

// NeedsProof reports whether an attempt may request the step only with proof that it
// had no effect.
func (s Step) NeedsProof() bool { return s == StepFail || s == StepRelease }

// Succeeds reports whether the step says that the operation has succeeded.
func (s Step) Succeeds() bool { return s == StepSucceed }

// Transitions returns the whole table: every change that a record can go through, and no
// other. docs/protocol.md shows it. A test runs the transition function over every record
// and every step, and finds exactly these rows.
func Transitions() []Transition {
	const (
		absent, pending, progress = store.Absent, store.Pending, store.InProgress
		doubt, succeeded, failed  = store.InDoubt, store.Succeeded, store.Failed
	)
	row := func(s Step, from, to store.State, by, cond string) Transition {
		return Transition{Step: string(s), From: from, To: to, By: by, Condition: cond}
	}
	return []Transition{
		row(StepCreate, absent, pending, "caller, in its transaction", "no record exists"),
		row(StepReschedule, pending, pending, "caller, worker", "the token is current"),
		row(StepClaim, absent, progress, "caller, worker", "no record exists"),
		row(StepClaim, pending, progress, "caller, worker", "the token is current; due; attempt + 1"),
		row(StepHeartbeat, progress, progress, "leader", "the token is current, even if the lease has expired; max run not reached"),
		row(StepTakeover, progress, progress, "follower, worker", "lease expired by the store's clock; the policy allows another attempt; attempt + 1"),
		row(StepRequeue, progress, pending, "sweeper; leader", "the policy allows another attempt; sweeper: lease expired by the store's clock, new owner; leader: the token is current, its effect is unknown"),
		row(StepSucceed, progress, succeeded, "leader", "the token is current; inside a transaction the last statement"),
		row(StepFail, progress, failed, "leader", "the token is current; proof that no attempt so far committed"),
		row(StepRelease, progress, pending, "leader", "the token is current; proof that this attempt did not commit"),
		row(StepDoubt, progress, doubt, "leader; any caller after expiry", "leader: its effect is unknown; others: the policy allows no other attempt and no evidence was found"),
		row(StepHeal, progress, succeeded, "any caller", "positive evidence, before or after expiry; new owner"),
		row(StepHeal, doubt, succeeded, "any caller", "positive evidence; new owner"),
		row(StepSettle, doubt, succeeded, "late leader", "its attempt is the last one; proof that it committed"),
		row(StepSettle, doubt, failed, "late leader", "its attempt is the last one; proof that no attempt so far committed"),
		row(StepResolve, doubt, succeeded, "operator, reconciler", "a reason is given"),
		row(StepResolve, doubt, failed, "operator, reconciler", "a reason is given"),
		row(StepResolve, doubt, pending, "operator, reconciler", "a reason is given"),
		row(StepCancel, pending, failed, "caller, worker", "the token is current; no attempt can have had an effect"),
		row(StepCancel, pending, doubt, "caller, worker", "the token is current; an earlier attempt may have had an effect"),
		row(StepRedrive, failed, pending, "operator", "the system owns the key (task, message)"),
		row(StepRedrive, doubt, pending, "operator", "the system owns the key; the policy allows another attempt; the record stays tainted, except under Atomic"),
		row(StepInline, absent, succeeded, "leader", "in one transaction; no record exists"),
		row(StepInline, absent, failed, "leader", "in one transaction, domain writes rolled back; no record exists"),
		row(StepInline, absent, pending, "leader", "in one transaction, domain writes rolled back; no record exists; to be retried"),
		row(StepInline, pending, succeeded, "leader", "in one transaction; the token is current; due; attempt + 1"),
		row(StepInline, pending, failed, "leader", "in one transaction, domain writes rolled back; the token is current; due; attempt + 1"),
		row(StepInline, pending, pending, "leader", "in one transaction, domain writes rolled back; the token is current; due; attempt + 1; to be retried"),
		row(StepInline, progress, succeeded, "leader", "in one transaction; policy Atomic; lease expired; attempt + 1"),
		row(StepInline, progress, failed, "leader", "in one transaction, domain writes rolled back; policy Atomic; lease expired; attempt + 1"),
		row(StepInline, progress, pending, "leader", "in one transaction, domain writes rolled back; policy Atomic; lease expired; attempt + 1; to be retried"),
		row(StepVoid, absent, pending, "leader of an inline attempt, caller", "its commit, or its claim, got no reply; once void is applied, that write can never be applied; attempt + 1"),
		row(StepVoid, pending, pending, "leader of an inline attempt, caller", "the same; the token is current"),
		row(StepVoid, progress, pending, "leader of an inline attempt", "the same; policy Atomic; the token is current; lease expired"),
		row(StepPurge, pending, absent, "sweeper", "expired by the store's clock"),
		row(StepPurge, succeeded, absent, "sweeper", "expired by the store's clock"),
		row(StepPurge, failed, absent, "sweeper", "expired by the store's clock"),
	}
}
