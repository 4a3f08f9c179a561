// Package task runs queued calls: a program enqueues a call with
// [semel.EnqueueTx], in its own transaction, and a [Worker] of any process runs
// it later.
//
// # What is promised
//
// A task is an operation with [semel.Retry] and a key. A task and a direct call
// of the same operation and key are one record, and run once. The function of a
// task may run more than once, because processes die and errors are retried, but
// only one run's outcome is stored. The operation's policy decides what that
// means for the effect:
//
//   - [HandleTx], policy Atomic: the effect and the outcome commit in one
//     transaction, so each key has one effect, always. A run whose lease was
//     taken over gets [semel.ErrLeaseLost] and cannot commit.
//   - [Handle]: the effect is anywhere else. Hold and Heal never start another
//     run while the outcome of a run is unknown. Keyed and Fenced do; the
//     receiver deduplicates by [semel.ChildKey] or by the fencing token of
//     [semel.AttemptOf]. AtLeastOnce does too, and the effect may happen once in
//     each run.
//
// An enqueued task is never lost, and never purged before it has ended. It ends
// as Succeeded; as Failed when its attempts are used up and no attempt committed,
// with the history of its attempts; or as InDoubt when the outcome is unknown.
//
// # What is not promised
//
// Tasks of one operation are claimed by priority, and then by the time they are
// due. They may end in any order. A function that has lost its lease and ignores
// the end of its context continues and keeps its slot. Its result does not change
// the record, but its effects elsewhere remain.
package task
