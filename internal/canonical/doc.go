// Package canonical finds out what JSON makes of Go values.
//
// The canonical form of a value is its JSON without struct fields that have their
// zero value, and with fields sorted by name. So a program version that adds or
// reorders fields has the same canonical form for earlier values. It is for
// digests, and is never decoded.
//
// Check finds the parts of a value that JSON loses: invalid UTF-8, fields that JSON
// does not contain, and values that are others after they were encoded and decoded.
package canonical
