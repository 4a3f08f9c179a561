package task

// QueueOrder is the order in which hands run what they are given: three functions, one
// that is to be run soon, and another one once two have begun.
func QueueOrder() (ran []string) {
	h := newGoroutinePool()
	h.wakePending = true // nobody comes by itself
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
