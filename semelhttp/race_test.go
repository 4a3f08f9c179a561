//go:build race

package semelhttp_test

// raced means that this test binary has the race detector, which allocates.
const raced = true
