package sim

import "iter"

// coroutine runs one function after another. Each resume continues the function
// until it yields. Coroutines are kept from run to run, because a new one would
// have to grow its stack again.
type coroutine struct {
	work  func()
	yield func(ended bool) bool
	next  func() (bool, bool)
	stop  func()
}

func newCoroutine() *coroutine {
	co := new(coroutine)
	co.next, co.stop = iter.Pull(func(yield func(bool) bool) {
		co.yield = yield
		for {
			co.work()
			if !yield(true) {
				return
			}
		}
	})
	return co
}

// resume continues the function until it yields. It reports whether the
// function has ended.
func (co *coroutine) resume() bool {
	ended, _ := co.next()
	return ended
}
