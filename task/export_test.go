package task

// OrderOfHands is the order in which hands run what they are given: three functions, one
// that is to be run soon, and another one once two have begun.
func OrderOfHands() (ran []string) {
	h := newHands()
	h.called = true // nobody comes by itself
	note := func(name string) func() { return func() { ran = append(ran, name) } }
	h.do(note("first"))
	h.do(note("second"))
	h.do(note("third"))
	h.soon(note("soon"))
	h.next()()
	h.next()()
	h.soon(note("sooner"))
	for f := h.next(); f != nil; f = h.next() {
		f()
	}
	return ran
}
