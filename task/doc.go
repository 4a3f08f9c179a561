// Package task runs calls that wait in the store: a caller adds one with
// [semel.EnqueueTx], in its own transaction, and a [Worker] of any process runs
// it later.
//
// # What is promised
//
// A task is an operation with [semel.Retry] and a key. A task and a direct call of
// the same operation and key are one record, and run once. Its function may be run
// more than once, because processes die and errors are tried again; at most one
// run is accepted. What that means for the effect is the operation's policy:
//
//   - [HandleTx], policy Atomic: the effect and the outcome commit as one. One
//     effect per key, always. A run that was overtaken gets [semel.ErrLeaseLost]
//     and cannot commit.
//   - [Handle]: the effect is anywhere else. Hold and Heal never run again by
//     themselves when nobody knows what a run has done; Keyed and Fenced do, and
//     the receiver makes it one effect, by [semel.ChildKey] or by the token of
//     [semel.AttemptOf]; AtLeastOnce does, and the effect may happen once per run.
//
// What was enqueued is never lost and never purged before it is done. It ends as
// Succeeded, as Failed when its attempts are used up and nothing was committed,
// with the history of its attempts, or InDoubt when nobody knows.
//
// # What is not promised
//
// Tasks of one kind are claimed in the order of their priority, and then of the time
// they are due; they do not end in any order. A function that has lost its lease, and
// ignores that its context has ended, goes on and keeps its slot. What it returns
// changes nothing in the record; what it does elsewhere is done.
package task
