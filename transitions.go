package semel

import "github.com/semelgo/semel/store"

// Transition is one row of the protocol's table: a step that may change a
// record, who may take it, and what must hold for it.
type Transition struct {
	Step     string
	From, To store.State
	Who      string
	If       string
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

// Transitions returns the whole table, in the order of DESIGN: every change a
// record can go through, and no other. The transition function is tested to
// make exactly these.
func Transitions() []Transition {
	const (
		absent, pending, progress = store.Absent, store.Pending, store.InProgress
		doubt, succeeded, failed  = store.InDoubt, store.Succeeded, store.Failed
	)
	row := func(s step, from, to store.State, who, cond string) Transition {
		return Transition{Step: string(s), From: from, To: to, Who: who, If: cond}
	}
	return []Transition{
		row(stepCreate, absent, pending, "caller, in its transaction", "no record"),
		row(stepReschedule, pending, pending, "caller, worker", "the token stands"),
		row(stepClaim, absent, progress, "caller, worker", "no record"),
		row(stepClaim, pending, progress, "caller, worker", "the token stands; due; attempt + 1"),
		row(stepHeartbeat, progress, progress, "leader", "the token stands, expired or not; not past max run"),
		row(stepTakeover, progress, progress, "follower, worker", "the lease is over by the store's clock; the policy runs again; attempt + 1"),
		row(stepRequeue, progress, pending, "sweeper; leader", "the policy runs again; the lease is over by the store's clock, and a new owner; or its leader, whose token stands, does not know"),
		row(stepSucceed, progress, succeeded, "leader", "the token stands; in a transaction the last statement"),
		row(stepFail, progress, failed, "leader", "the token stands; nothing committed, by every attempt so far"),
		row(stepRelease, progress, pending, "leader", "the token stands; nothing committed by this attempt"),
		row(stepDoubt, progress, doubt, "leader; anyone once the lease is over", "the leader does not know; or the policy does not run again and no evidence was found"),
		row(stepHeal, progress, succeeded, "anyone", "positive evidence, before or after expiry; new owner"),
		row(stepHeal, doubt, succeeded, "anyone", "positive evidence; new owner"),
		row(stepSettle, doubt, succeeded, "the late leader", "its attempt is the last one; it knows that it committed"),
		row(stepSettle, doubt, failed, "the late leader", "its attempt is the last one; nothing committed, by every attempt so far"),
		row(stepResolve, doubt, succeeded, "person, reconciler", "a reason is given"),
		row(stepResolve, doubt, failed, "person, reconciler", "a reason is given"),
		row(stepResolve, doubt, pending, "person, reconciler", "a reason is given"),
		row(stepCancel, pending, failed, "caller, worker", "the token stands; no attempt may have had an effect"),
		row(stepRedrive, failed, pending, "person", "the system owns the key"),
		row(stepRedrive, doubt, pending, "person", "the system owns the key; the policy allows another attempt; the record stays tainted, except under Atomic"),
		row(stepInline, absent, succeeded, "leader", "within one transaction; no record"),
		row(stepInline, absent, failed, "leader", "within one transaction, its effect undone; no record"),
		row(stepInline, absent, pending, "leader", "within one transaction, its effect undone; no record; it is to be tried again"),
		row(stepInline, pending, succeeded, "leader", "within one transaction; the token stands; due; attempt + 1"),
		row(stepInline, pending, failed, "leader", "within one transaction, its effect undone; the token stands; due; attempt + 1"),
		row(stepInline, pending, pending, "leader", "within one transaction, its effect undone; the token stands; due; attempt + 1; it is to be tried again"),
		row(stepInline, progress, succeeded, "leader", "within one transaction; policy Atomic; the lease is over; attempt + 1"),
		row(stepInline, progress, failed, "leader", "within one transaction, its effect undone; policy Atomic; the lease is over; attempt + 1"),
		row(stepInline, progress, pending, "leader", "within one transaction, its effect undone; policy Atomic; the lease is over; attempt + 1; it is to be tried again"),
		row(stepVoid, absent, pending, "leader of an inline attempt, caller", "its commit, or its claim, is without an answer: once this is in force it can never come; attempt + 1"),
		row(stepVoid, pending, pending, "leader of an inline attempt, caller", "the same; the token stands"),
		row(stepVoid, progress, pending, "leader of an inline attempt", "the same; policy Atomic; the token stands; the lease is over"),
		row(stepPurge, pending, absent, "sweeper", "expired by the store's clock"),
		row(stepPurge, succeeded, absent, "sweeper", "expired by the store's clock"),
		row(stepPurge, failed, absent, "sweeper", "expired by the store's clock"),
	}
}
