package postgres

// frame has the statements before and after others in the same round trip.
type frame struct{ before, after []string }

// frames are the frames of a swapper's round trips.
type frames struct {
	one   frame // for a few changes
	many  frame // for bulk statements
	look  frame // for reads
	alone frame // for a change that was busy in a batch
	hasty frame // for the same, after some changes were still busy
}

const (
	saveSwap = `SAVEPOINT semel_swap`
	keepSwap = `RELEASE SAVEPOINT semel_swap`
	undoSwap = `ROLLBACK TO SAVEPOINT semel_swap`
)
