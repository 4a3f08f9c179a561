//go:build !race

package semelhttp_test

const raced = false
