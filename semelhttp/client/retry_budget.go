package client

import (
	"cmp"
	"math"
	"sync"

	"github.com/semelgo/semel"
)

// RetryBudget limits the retries that all calls of one or several [Transport] make
// together. Each call earns a part of a retry, and each retry costs one. If the
// budget is used up, a call returns its last response or error instead of retrying.
// The zero value allows ten retries at once, and later one for ten calls. Do not
// change its fields or copy it while it is in use.
type RetryBudget struct {
	// PerCall is what a call earns, in retries: 0.2 lets one call in five be
	// retried once. Zero: 0.1.
	PerCall float64
	// Burst is the largest number of saved retries, and the number at the start.
	// Zero: 10.
	Burst int

	mu    sync.Mutex
	spent float64 // of Burst
}

const (
	defaultPerCall = 0.1
	defaultBurst   = 10
)

func (b *RetryBudget) valid() error {
	switch {
	case b == nil:
		return nil
	case !(b.PerCall >= 0) || math.IsInf(b.PerCall, 1): // neither negative nor NaN
		return &semel.FieldError{Field: "RetryBudget.PerCall", Reason: "must be zero or above"}
	case b.Burst < 0:
		return &semel.FieldError{Field: "RetryBudget.Burst", Reason: "is negative"}
	default:
		return nil
	}
}

// earn adds what a call earns.
func (b *RetryBudget) earn() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.spent = max(b.spent-cmp.Or(b.PerCall, defaultPerCall), 0)
	}
}

// spend takes one retry, and reports whether there was one.
func (b *RetryBudget) spend() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent+1 > float64(cmp.Or(b.Burst, defaultBurst)) {
		return false
	}
	b.spent++
	return true
}
