package semel

import (
	"context"

	"github.com/semelgo/semel/internal/engine"
)

// Policy names what happens to a key after its leader has crashed, and so the
// guarantee of the operation. The zero Policy is unset: [Do] then uses Hold, and
// [DoTx] one transaction. IsZero reports whether it is unset, IsAtomic whether it is
// Atomic, and HasProbe whether it is Heal or Fenced. String returns its name.
type Policy = engine.Policy

// Atomic means that the effect is in the record's own database, in the transaction
// of [DoTx] or [InTx]: one effect per key, always. With a Lease the claim commits
// first, so that other callers get an answer while the attempt runs. Without one
// the whole attempt is one transaction.
//
// With [Do] the guarantee covers what the function does within InTx and nothing
// else. After a rollback of InTx's transaction, every error means that nothing was
// committed. Before the function has called InTx, an error proves nothing unless it
// is marked [NotCommitted] or [Final], or Classify says so: the attempt's effect is
// unknown, and another attempt may run. A function that returns success without
// having called InTx is wrong: the caller gets [ErrOutcomeUnknown], the record
// becomes InDoubt, and the Observer receives an alarm.
func Atomic() Policy {
	return engine.Atomic()
}

// Hold never runs an operation again by itself: after a crash the record is InDoubt
// until an operator or a reconciler resolves it. At most one effect. It is the
// policy of [Do] if none is set.
func Hold() Policy {
	return engine.Hold()
}

// Heal probes the domain for evidence whenever it finds an unfinished record.
// Evidence completes the record; without evidence Heal is like Hold. At most one
// effect.
//
// The probe searches the domain for the effect of a key. If it finds the effect, it
// returns true and the result, exactly as the operation would have returned it. Not
// found proves nothing: the record then becomes InDoubt. A probe may be called at
// any time, by followers and sweepers, and must not write.
func Heal(probe func(ctx context.Context, scope Scope, key string) (result any, found bool, err error)) Policy {
	return engine.Heal(probe)
}

// Fenced runs an operation again after a crash, in the only safe order: raise the
// fence at the receiver, look for the effect of an earlier attempt, then run. After
// raise, the receiver must reject requests of attempts with a lower number. At most
// one effect, if the receiver enforces the fence. An error marked [NotCommitted]
// then proves something about the earlier attempts too. look is a probe, as in [Heal].
func Fenced(raise func(ctx context.Context, scope Scope, key string, attempt uint32) error,
	look func(ctx context.Context, scope Scope, key string) (result any, found bool, err error),
) Policy {
	return engine.Fenced(raise, look)
}

// Keyed runs an operation again after a crash, with a receiver that deduplicates by
// key: give it [ChildKey], which is the same in every attempt. One effect, if the
// receiver remembers the key for longer than the record is kept. Mark an error
// [NotCommitted] or [Final] only if it is the receiver's own answer to that key,
// because the mark also counts as proof about the earlier attempts. An error raised
// before the request was sent is no such answer.
func Keyed() Policy {
	return engine.Keyed()
}

// AtLeastOnce runs an operation again after a crash. Each attempt may have an
// effect.
func AtLeastOnce() Policy {
	return engine.AtLeastOnce()
}
