package storetest

// WithCallers returns s with a function that counts the concurrent callers.
func WithCallers[Tx any](s Subject[Tx], callers func(n int)) Subject[Tx] {
	s.callers = callers
	return s
}
