// Package codec encodes what a record stores about its operation: the outcome, a
// failure, a tombstone, and the progress over several attempts. The first byte of
// the bytes says which of them they are.
package codec
