// Package memory is the reference store: it keeps records in this process, and
// loses them when the process ends.
//
// It has transactions, so code that runs under DoTx can be tested without a
// database: a [Tx] is a small key-value map whose writes are applied with the
// commit and are gone with a rollback. What committed is read with
// [Store.Value].
//
// # Bounds
//
// A Store keeps at most Options.MaxRecords records. A create that finds it full
// removes records whose retention is over; if there are none, it is refused with
// [ErrFull]. Nothing that still counts is ever evicted.
//
// # Isolation
//
// Transactions read what is committed, and their own writes. What they write,
// values and records alike, is buffered and applied as one at commit. A record
// that an open transaction has written is Busy for other callers. Values have
// no such lock: of two transactions that put one key, the later commit wins.
// Nothing ever waits.
package memory
