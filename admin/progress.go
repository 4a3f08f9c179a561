package admin

import (
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/store"
)

// Progress is the progress of an operation with [semel.Retry] over its attempts. It is
// stored in the record until that is final, and in the stored failure of a record
// that was exhausted or cancelled.
type Progress = codec.Progress

// Try is the end of one attempt.
type Try = codec.Try

// TryKind says how an attempt ended. The values are stable names.
type TryKind = codec.TryKind

// The kinds of ends of an attempt that did not end its record.
const (
	TryError       = codec.TryError       // its function returned one
	TrySnooze      = codec.TrySnooze      // it returned Snooze
	TryInterrupted = codec.TryInterrupted // by the store, or by the end of its process; not counted as an error
	TryCrash       = codec.TryCrash       // its lease expired without an end
)

// ProgressOf returns the progress of a record, and whether there is any. A record
// that succeeded, or that failed by its function's own error, has none.
func ProgressOf(r store.Record) (Progress, bool) { return codec.ProgressOf(r) }

// IsDeadLetter reports whether r is a dead letter: a task or a message that is not
// tried again, because its attempts are used up or because its consumer rejected
// the message. It is Failed, or InDoubt under a policy that allows another attempt.
// The record itself says so, in the first byte of its outcome, "d"; the operation's
// definition is not needed. Dead letters are kept for [semel.Retry].DeadLetterRetention,
// and [Redrive] accepts them.
func IsDeadLetter(r store.Record) bool { return codec.IsDeadLetter(r) }
