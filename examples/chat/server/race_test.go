//go:build race

package server_test

// raced says that this test binary has the race detector.
const raced = true
