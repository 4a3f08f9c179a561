// Package doctest holds the documents to the truth: links lead somewhere, the
// programs in the README run, both languages say the same.
package doctest
