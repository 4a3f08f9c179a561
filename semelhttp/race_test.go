//go:build race

package semelhttp_test

// raced says that this test binary has the race detector in it, which allocates.
const raced = true
