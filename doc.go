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
//   - The effect is anywhere else: [Do]. The operation's
//     [Policy] names the guarantee after a crash.
//   - An adapter that cannot pass its work as a function: package adapter.
//
// # Terms
//
// A key is unique within a [Scope] of an operation. A claim makes one caller the
// leader of the key; concurrent callers are followers. A leader has a lease and
// renews it by heartbeats; after the lease has expired, others may take over. The
// number of the attempt and a random owner form the fencing token: every write is
// a compare-and-swap on it, so a leader that was taken over (a zombie) can change
// nothing.
//
// docs/protocol.md lists the states and every step between them. The protocol is one
// pure function over records; stores only compare and swap.
package semel
