package bus

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between connections.
const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// reconnect runs a connection again and again until ctx ends, with a pause that
// grows with each failure in a row. run reports whether it was connected.
func reconnect(ctx context.Context, run func() (connected bool, err error)) error {
	pause := minPause
	for {
		connected, _ := run()
		if connected {
			pause = minPause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, maxPause)
	}
}
