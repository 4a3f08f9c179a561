package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/semelgo/semel"
)

// errFenced is the receiver's answer to an attempt below the fence.
var errFenced = errors.New("storetest: below the fence")

// receiver receives the effects that are not in the store's database.
type receiver struct {
	mu      sync.Mutex
	count   int
	result  string // of the last effect
	fence   uint32
	answers map[string]string // by child key
}

// addEffect counts an effect, unless the attempt is below the fence.
func (v *receiver) addEffect(attempt uint32, result string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if attempt < v.fence {
		return errFenced
	}
	v.count++
	v.result = result
	return nil
}

// addEffectOnce counts an effect once per child key, and returns the same result
// again.
func (v *receiver) addEffectOnce(key, result string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if earlier, ok := v.answers[key]; ok {
		return earlier
	}
	if v.answers == nil {
		v.answers = make(map[string]string)
	}
	v.answers[key] = result
	v.count++
	return result
}

func (v *receiver) effects() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count
}

// probe looks for the effect.
func (v *receiver) probe(context.Context, semel.Scope, string) (any, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.result, v.count > 0, nil
}

// raise raises the fence.
func (v *receiver) raise(_ context.Context, _ semel.Scope, _ string, attempt uint32) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fence = max(v.fence, attempt)
	return nil
}
