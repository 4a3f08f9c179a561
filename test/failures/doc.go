// Package failures holds no code of its own. Its tests take each way in which
// services that repeat requests are known to fail and show it on each store,
// through HTTP and through the engine; docs/evidence.md lists them.
package failures
