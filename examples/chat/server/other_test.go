//go:build !unix

package server_test

// beChild is not available on systems that cannot stop and continue processes.
func beChild(string) int { return 1 }
