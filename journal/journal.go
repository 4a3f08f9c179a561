package journal

import (
	"time"

	"github.com/semelgo/semel/store"
)

// Journal keeps outcomes that could not be recorded in the store, across restarts
// of the process. Its methods may be called concurrently.
type Journal interface {
	// Keep stores an entry durably. Storing it again changes nothing.
	Keep(e Entry) error
	// Drop removes the entry of a token. A missing entry is no error.
	Drop(id store.ID, token store.Token) error
	// Entries returns the stored entries.
	Entries() ([]Entry, error)
}

// Entry is an outcome that could not be recorded: the claimed record, and the end of
// its attempt.
type Entry struct {
	Record  store.Record
	Step    string
	Outcome []byte
	Expire  time.Duration
	// Delay is the delay of the next attempt, from the time when the entry is
	// recorded.
	Delay  time.Duration
	Policy uint8
}
