package engine

import (
	"sync"

	"github.com/semelgo/semel/internal/callerr"
)

// attemptTx has the state of the transactions of [InTx] in one attempt.
type attemptTx struct {
	mu      sync.Mutex
	running bool // InTx is running
	tried   bool // InTx was called
	open    bool // its transaction has begun
}

// enter begins a call of InTx. decided means that the attempt has its outcome.
func (t *attemptTx) enter(decided bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case decided:
		return callerr.Invalid("Attempt", "has its outcome already")
	case t.running:
		return callerr.Invalid("Attempt", "runs a transaction already")
	}
	t.running, t.tried = true, true
	return nil
}

func (t *attemptTx) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.open = false, false
}

func (t *attemptTx) markOpen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = true
}

func (t *attemptTx) isRunning() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

func (t *attemptTx) wasTried() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tried
}

func (t *attemptTx) isOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}
