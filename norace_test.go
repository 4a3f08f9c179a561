//go:build !race

package semel_test

const raced = false
