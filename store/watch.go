package store

import "context"

// Watcher is a store that tells a caller when a record changes, so that a caller which waits
// for another process is answered at once. Without it, callers read the record again and
// again.
type Watcher interface {
	// Watch returns nil when the current token of the record is not token: at once if
	// the record has changed already, or does not exist. It returns an error when ctx
	// ends, or if it cannot watch. The result is a hint: the caller reads the record in
	// any case.
	Watch(ctx context.Context, id ID, token Token) error
}
