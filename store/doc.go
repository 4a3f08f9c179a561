// Package store is the contract between Semel's protocol and the databases
// that keep its records.
//
// A store is a compare-and-swap register with a clock. It knows nothing about the
// protocol: one pure function in package semel decides which change is allowed, which
// caller may make it, and what it means. So stores are small, and all of them behave
// alike. Package storetest has the tests that every store must pass.
//
// # Tokens
//
// There is no version number. A [Change] names the [Token] (state, attempt, owner) that
// must be current, and the record that replaces it. Each writer draws a new random
// owner; only a leader that ends its own attempt keeps its owner. So two equal tokens of
// one [ID] mean the same write, repeating a write is always safe, and a lost reply needs
// no special case.
//
// # Time
//
// No absolute time enters or leaves a store. Durations in changes count from the store's
// current time. Durations in results are remaining or elapsed times.
//
// # Optional interfaces
//
// A store may implement further interfaces: [Auditor] keeps notes about operators'
// changes, [Counter] counts records for reports, [Dequeuer] claims Pending records by
// [Record] Priority and Due, [Watcher] reports a change to a caller that waits for it,
// [InProcess] serves single changes without lists, and [BatchJoiner] lets changes join a batch
// that is in flight. None of them makes a change that a Swap could not make.
package store
