package sim

import "iter"

// coroutine runs one piece of work after another, in turns with whoever resumes
// it. It is kept from run to run: a new one for each would have to grow its
// stack anew each time.
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

// resume lets the work go on until it yields, and tells whether it has ended.
func (co *coroutine) resume() bool {
	ended, _ := co.next()
	return ended
}
