package semel

import "github.com/semelgo/semel/store"

// Transition is one row of the protocol's table: a step that changes a record, the
// party that may take it, and the condition that must hold.
type Transition struct {
	Step      string
	From, To  store.State
	By        string
	Condition string
}

// step names a row of the table.
type step string

const (
	stepCreate     step = "create"
	stepReschedule step = "reschedule"
	stepClaim      step = "claim"
	stepHeartbeat  step = "heartbeat"
	stepTakeover   step = "takeover"
	stepRequeue    step = "requeue"
	stepSucceed    step = "succeed"
	stepFail       step = "fail"
	stepRelease    step = "release"
	stepDoubt      step = "doubt"
	stepHeal       step = "heal"
	stepSettle     step = "settle"
	stepResolve    step = "resolve"
	stepCancel     step = "cancel"
	stepRedrive    step = "redrive"
	stepInline     step = "inline"
	stepVoid       step = "void"
	stepPurge      step = "purge"
)

// Transitions returns the whole table: every change that a record can go through, and no
// other. docs/protocol.md shows it. A test runs the transition function over every record
// and every step, and finds exactly these rows.
func Transitions() []Transition {
	const (
		absent, pending, progress = store.Absent, store.Pending, store.InProgress
		doubt, succeeded, failed  = store.InDoubt, store.Succeeded, store.Failed
	)
	row := func(s step, from, to store.State, by, cond string) Transition {
		return Transition{Step: string(s), From: from, To: to, By: by, Condition: cond}
	}
	return []Transition{
		row(stepCreate, absent, pending, "caller, in its transaction", "no record exists"),
		row(stepReschedule, pending, pending, "caller, worker", "the token is current"),
		row(stepClaim, absent, progress, "caller, worker", "no record exists"),
		row(stepClaim, pending, progress, "caller, worker", "the token is current; due; attempt + 1"),
		row(stepHeartbeat, progress, progress, "leader", "the token is current, even if the lease has expired; max run not reached"),
		row(stepTakeover, progress, progress, "follower, worker", "lease expired by the store's clock; the policy allows another attempt; attempt + 1"),
		row(stepRequeue, progress, pending, "sweeper; leader", "the policy allows another attempt; sweeper: lease expired by the store's clock, new owner; leader: the token is current, its effect is unknown"),
		row(stepSucceed, progress, succeeded, "leader", "the token is current; inside a transaction the last statement"),
		row(stepFail, progress, failed, "leader", "the token is current; proof that no attempt so far committed"),
		row(stepRelease, progress, pending, "leader", "the token is current; proof that this attempt did not commit"),
		row(stepDoubt, progress, doubt, "leader; any caller after expiry", "leader: its effect is unknown; others: the policy allows no other attempt and no evidence was found"),
		row(stepHeal, progress, succeeded, "any caller", "positive evidence, before or after expiry; new owner"),
		row(stepHeal, doubt, succeeded, "any caller", "positive evidence; new owner"),
		row(stepSettle, doubt, succeeded, "late leader", "its attempt is the last one; proof that it committed"),
		row(stepSettle, doubt, failed, "late leader", "its attempt is the last one; proof that no attempt so far committed"),
		row(stepResolve, doubt, succeeded, "operator, reconciler", "a reason is given"),
		row(stepResolve, doubt, failed, "operator, reconciler", "a reason is given"),
		row(stepResolve, doubt, pending, "operator, reconciler", "a reason is given"),
		row(stepCancel, pending, failed, "caller, worker", "the token is current; no attempt can have had an effect"),
		row(stepRedrive, failed, pending, "operator", "the system owns the key (task, message)"),
		row(stepRedrive, doubt, pending, "operator", "the system owns the key; the policy allows another attempt; the record stays tainted, except under Atomic"),
		row(stepInline, absent, succeeded, "leader", "in one transaction; no record exists"),
		row(stepInline, absent, failed, "leader", "in one transaction, domain writes rolled back; no record exists"),
		row(stepInline, absent, pending, "leader", "in one transaction, domain writes rolled back; no record exists; to be retried"),
		row(stepInline, pending, succeeded, "leader", "in one transaction; the token is current; due; attempt + 1"),
		row(stepInline, pending, failed, "leader", "in one transaction, domain writes rolled back; the token is current; due; attempt + 1"),
		row(stepInline, pending, pending, "leader", "in one transaction, domain writes rolled back; the token is current; due; attempt + 1; to be retried"),
		row(stepInline, progress, succeeded, "leader", "in one transaction; policy Atomic; lease expired; attempt + 1"),
		row(stepInline, progress, failed, "leader", "in one transaction, domain writes rolled back; policy Atomic; lease expired; attempt + 1"),
		row(stepInline, progress, pending, "leader", "in one transaction, domain writes rolled back; policy Atomic; lease expired; attempt + 1; to be retried"),
		row(stepVoid, absent, pending, "leader of an inline attempt, caller", "its commit, or its claim, got no reply; once void is applied, that write can never be applied; attempt + 1"),
		row(stepVoid, pending, pending, "leader of an inline attempt, caller", "the same; the token is current"),
		row(stepVoid, progress, pending, "leader of an inline attempt", "the same; policy Atomic; the token is current; lease expired"),
		row(stepPurge, pending, absent, "sweeper", "expired by the store's clock"),
		row(stepPurge, succeeded, absent, "sweeper", "expired by the store's clock"),
		row(stepPurge, failed, absent, "sweeper", "expired by the store's clock"),
	}
}
