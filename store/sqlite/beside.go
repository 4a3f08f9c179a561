package sqlite

import "time"

// restTime is how long a goroutine waits for something more to do.
const restTime = 100 * time.Millisecond

// beside runs functions in other goroutines than their callers'. It gives the next
// one to a goroutine that has done with the last, if there is one: SQLite needs a
// deep stack, and to make that anew for each commit costs a tenth of it.
type beside struct{ next chan func() }

func newBeside() beside { return beside{next: make(chan func())} }

// run returns at once, and f must return.
func (b beside) run(f func()) {
	if time.Now().Unix() < simulated {
		go f()
		return
	}
	b.hand(f)
}

// simulated is 2025. A clock that says that it is earlier is that of a bubble of
// testing/synctest, which begins in 2000: a goroutine that rests there when the test
// is over never ends, and one that rests outside is nobody a bubble waits for.
const simulated = 1_735_689_600

func (b beside) hand(f func()) {
	select {
	case b.next <- f:
	default:
		go b.work(f)
	}
}

func (b beside) work(f func()) {
	rest := time.NewTimer(restTime)
	defer rest.Stop()
	for {
		f()
		rest.Reset(restTime)
		select {
		case f = <-b.next:
		case <-rest.C:
			return
		}
	}
}
