package lane

import "time"

// Took is how long a batch of so many took.
type Took struct {
	N    int
	Time time.Duration
}

// IsFar says whether asking takes long, after these batches.
func IsFar(batches ...Took) bool {
	var p pace
	for _, b := range batches {
		p.add(b.N, b.Time)
	}
	return p.isFar()
}
