package lane

import "time"

const (
	// farFrom is how long a small batch takes where the network or the disk is far: what a
	// database works for it takes a fraction of that.
	farFrom = time.Millisecond
	// small is a batch that asks for so little that it tells.
	small = 16
	// slower is the share by which the pace goes up at a time.
	slower = 16
)

// pace is about the shortest time that a small batch has taken lately. Large ones say
// nothing of it, which take as long as what is done for them, nor do those that failed.
type pace time.Duration

// add takes a batch of n into account that took so long. One that is quick counts at once,
// and one that is slow a little: it may have been somebody else's doing.
func (p *pace) add(n int, took time.Duration) {
	switch was := time.Duration(*p); {
	case n > small || took == 0:
	case was == 0 || took < was:
		*p = pace(took)
	default:
		*p += pace(min(took-was, was) / slower)
	}
}

func (p pace) isFar() bool { return time.Duration(p) >= farFrom }
