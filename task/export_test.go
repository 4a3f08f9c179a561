package task

// QueueOrder returns the order in which a goroutinePool runs its functions:
// three submitted functions, one submitted with submitFirst, and another one
// submitted with submitFirst after two have started.
func QueueOrder() (ran []string) {
	h := newGoroutinePool()
	h.wakePending = true // no goroutine is started
	note := func(name string) func() { return func() { ran = append(ran, name) } }
	h.submit(note("first"))
	h.submit(note("second"))
	h.submit(note("third"))
	h.submitFirst(note("soon"))
	h.next()()
	h.next()()
	h.submitFirst(note("sooner"))
	for f := h.next(); f != nil; f = h.next() {
		f()
	}
	return ran
}
