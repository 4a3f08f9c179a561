//go:build race

package sim_test

// raced says that this test binary has the race detector in it, which makes
// coroutines ten times slower and finds nothing in them: they never run at once.
const raced = true
