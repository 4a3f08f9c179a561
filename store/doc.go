// Package store is the contract between Semel's protocol and the databases
// that keep its records.
//
// A store is a compare-and-swap register with a clock. It knows no protocol:
// which change is allowed, who may make it, and what it means is decided by one
// pure function in package semel. That is why stores are small, and why all of
// them behave the same; package semeltest holds them to it.
//
// # Tokens
//
// There is no version number. A [Change] names the [Token] (state, attempt,
// owner) that must stand and the record that stands afterwards. Whoever writes
// draws a new random owner; only a leader that ends its own attempt keeps its
// owner. So two equal tokens of one [ID] mean the same write, asking again is
// always safe, and a lost reply needs no special case.
//
// # Time
//
// No absolute time enters or leaves a store. Durations in changes count from
// the store's now; durations in answers are what is left, or how long ago.
//
// # More than a register
//
// A store may have further powers, each a small interface of its own that is asked
// for once: [Auditor] keeps why records were changed by hand, [Counter] counts them
// for reports, [Dequeuer] hands out what waits, by [Record] Priority and Due, [InProcess]
// answers at once, and [BatchJoiner] lets changes join others that are on their way.
// None of them makes a change that a Swap could not make.
package store
