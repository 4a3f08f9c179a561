// Package semeltest has helpers for the tests of programs that use Semel: they let time
// pass for records, crash a leader, lose a reply, run due tasks and look for enqueued ones.
// docs/testing.md shows how to test that a handler is idempotent.
//
// Every helper needs a [testing.TB], so that no program uses one by mistake. The helpers
// work with every store and need no server of their own: use the database of your tests,
// or the memory store.
//
// Package semeltest/pin keeps fingerprints in golden files. Package store/storetest is for
// authors of stores.
package semeltest
