// Package archtest holds the house's rules as tests: which layer may import
// which, what the picture of all imports is, and what a linter cannot see.
package archtest
