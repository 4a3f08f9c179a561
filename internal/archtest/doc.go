// Package archtest tests the architecture: which layer may import which, the
// graph of all imports, and rules that no linter checks.
package archtest
