// Package doctest tests the documents: links and names exist, programs and fragments
// compile and run, defaults and errors match the code, and the translations have the same
// structure.
package doctest
