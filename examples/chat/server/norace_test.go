//go:build !race

package server_test

// raced is false here. Because of this file make test-full runs the package without the race detector too.
const raced = false
