// Package semel runs an operation once, however often it is asked for.
//
// Retries, redelivered messages, double clicks and crashed workers all ask for
// the same thing again. With a key per intent, an operation happens once, and
// everyone who asks gets the same answer. When that cannot be known, Semel says
// so and never guesses.
//
// # Which call for which effect
//
//   - The effect is in the record's own database: [DoTx]. Effect and record
//     share one transaction, so there is one effect per key, under crashes,
//     zombies, lost replies and ambiguous commits. When its statements are
//     known beforehand, [DoBatch] sends them with the record in one round trip.
//   - The effect is anywhere else: [Do]. What happens after a crash is named by
//     the operation's [Policy]; the promise is in the name.
//   - An adapter that cannot pass its work as a function: [Begin] and
//     [Attempt.End].
//
// # Words
//
// A key lives in a [Scope] of an operation. Becoming the one who runs it is a
// claim; the winner is the leader, all others are followers. A leader has a
// lease and prolongs it by heartbeats; once it ran out, others may take over.
// The number of the attempt together with a random owner is the fencing token:
// every write is a compare-and-swap on it, so a leader that was taken over
// (a zombie) can change nothing any more.
//
// The states and every step between them are in [Transitions]. The protocol is
// one pure function over records; stores only compare and swap.
package semel
