//go:build !unix

package server_test

// runChild is not available on systems that cannot stop and continue processes.
func runChild() int { return 1 }
