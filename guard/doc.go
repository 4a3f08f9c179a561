// Package guard has the modes of idempotency that protect rows of the domain instead of
// keeping answers, on the same records and leases as the rest of Semel:
//
//   - lock, check, execute: [Do] and [DoTx];
//   - state machine with optimistic lock: [Transition];
//   - business key with unique index: [Insert];
//   - records in another database than the domain: [Rows], which are written with the
//     effect, heal the records, and seal attempts so that a failure is certain.
//
// The caller writes the SQL, for the driver's placeholders, and the package checks what it
// did. It works with every driver of database/sql and with pgx, and imports none.
//
// docs/choosing-a-mode.md compares these modes with each other, with one-time tokens and
// with idempotency keys.
package guard
