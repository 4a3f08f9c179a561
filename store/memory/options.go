package memory

import (
	"errors"
	"time"
)

const (
	defaultMaxRecords = 100_000
	defaultMaxOutcome = 1 << 20
	maxBatch          = 1000
)

// ErrFull refuses a create: the store holds Options.MaxRecords records, and none of
// them has expired. Existing records can still be changed.
var ErrFull = errors.New("semel/store/memory: full")

// Options configures a Store. The zero value has good defaults.
type Options struct {
	// MaxRecords is the largest number of records. Zero or less means 100,000.
	MaxRecords int
	// MaxOutcome is the largest outcome or input, in bytes. Zero or less means 1
	// MiB.
	MaxOutcome int
	// Now is the store's clock. Nil means time.Now, whose monotonic reading is
	// used. Tests set it to move the store's time without sleeping. It must be safe
	// for concurrent use.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.MaxRecords <= 0 {
		o.MaxRecords = defaultMaxRecords
	}
	if o.MaxOutcome <= 0 {
		o.MaxOutcome = defaultMaxOutcome
	}
	return o
}
