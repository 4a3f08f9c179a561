// Package failures holds no code of its own. Its tests reproduce known failures of
// services that handle retries, beyond the tests of semelhttp and the stores, on
// each store and over connections to real servers; docs/evidence.md lists them all.
package failures
