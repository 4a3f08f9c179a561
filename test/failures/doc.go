// Package failures holds no code of its own. Its tests take ways in which
// services that repeat requests are known to fail, beyond what semelhttp and the
// stores show of themselves, and show them on each store and on the wire to a
// real one; docs/evidence.md lists them all.
package failures
