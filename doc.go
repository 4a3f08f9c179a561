// Package semel makes operations safe to retry: one idempotency key, one effect, and
// the same response for every retry.
//
// Retries, redelivered messages, double clicks and crashed workers all repeat a request
// that may have succeeded already. Give each intent a key. The engine keeps one record
// per key and answers every retry from it. Where it cannot prove whether an attempt had
// its effect, it returns [ErrOutcomeUnknown] or [ErrInDoubt]; it does not guess.
//
// # Choosing an API by where the effect is
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
