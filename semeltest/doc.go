// Package semeltest holds stores to their contract.
//
// A store's own test is one call of [Run]. The suite has four layers: what the
// contract of package store says of single calls, what it says of transactions,
// every edge of the protocol's table and what happens when many ask at once,
// and at last an engine on top whose calls fail or lose their answers. A layer
// that fails ends the run, because the ones above it would only repeat what it
// said: they are reported as skipped.
//
// Package semeltest's own tests run the suite against stores that are broken in
// one way each, and require that each fails exactly the check named for it.
//
// [Faulty] puts failing calls between an engine and any store.
package semeltest
