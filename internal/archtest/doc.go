// Package archtest tests the architecture: which layer may import which, the
// graph of all imports, and rules that no linter checks.
//
// The tests read and type-check the whole module in one goroutine. The race detector would
// find nothing and take minutes, so that they are built only without it; .ci/gotest runs
// them in full runs, too.
package archtest
