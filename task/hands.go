package task

// hands are goroutines that run one function after the other: whose last one has
// returned takes the next. A goroutine for each of them would have to make room for
// what it calls again each time, which is a quarter of what a small task costs.
type hands chan func()

// do runs f beside its caller. There are as many hands as have run at a time.
func (h hands) do(f func()) {
	select {
	case h <- f:
	default:
		go h.work(f)
	}
}

func (h hands) work(f func()) {
	for more := true; more; f, more = <-h {
		f()
	}
}

// dismiss ends all, once what they run has returned. Nothing may be done afterwards.
func (h hands) dismiss() { close(h) }
