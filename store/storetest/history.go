package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// answer is the answer to one caller of a key.
type answer struct {
	value string
	err   error
	// before and after are the number of effects of the key before the call and
	// after everything that it started has ended. They are equal when other callers
	// were running.
	before, after int
}

// history is all that is known of one key after all callers have been answered.
type history struct {
	answers []answer
	effects int          // committed at the end
	record  store.Record // at the end
	// mayRepeatEffect is set if the policy allows an effect per attempt.
	mayRepeatEffect bool
}

// violations returns the rules that the history violates.
func (h history) violations() []string {
	var broken []string
	for name, holds := range map[string]bool{
		"one effect per key":               h.effects <= h.allowedEffects(),
		"answer ok: stored with an effect": !h.any(isOK) || h.record.State == store.Succeeded && h.effects > 0,
		"answer failed: no effect":         !h.any(isStoredFailure) || h.record.State == store.Failed && h.effects == 0,
		"answer not committed: no effect":  !h.any(hasEffectDespiteNotCommitted),
		"all ok answers are equal":         h.sameOK(),
	} {
		if !holds {
			broken = append(broken, name)
		}
	}
	return broken
}

func (h history) allowedEffects() int {
	if h.mayRepeatEffect {
		return int(h.record.Attempt)
	}
	return 1
}

func (h history) any(is func(answer) bool) bool { return slices.ContainsFunc(h.answers, is) }

func (h history) sameOK() bool {
	var first *answer
	for _, a := range h.answers {
		switch {
		case !isOK(a):
		case first == nil:
			first = &a
		case a.value != first.value:
			return false
		}
	}
	return true
}

func isOK(a answer) bool { return a.err == nil }

// isStoredFailure reports whether the answer is the stored failure.
func isStoredFailure(a answer) bool {
	_, failed := errtype.Find[*semel.Failure](a.err)
	attempt, released := errtype.Find[*semel.AttemptError](a.err)
	return failed && (!released || attempt.State == store.Failed)
}

func hasEffectDespiteNotCommitted(a answer) bool {
	return a.err != nil && semel.VerdictOf(a.err) == store.NotCommitted && a.after > a.before
}

// final reports whether a retry gives the same answer.
func (a answer) final() bool {
	return isOK(a) || isStoredFailure(a) || errors.Is(a.err, semel.ErrInDoubt)
}

func (h history) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d effects, %s is current", h.effects, showToken(h.record.Token))
	for i, a := range h.answers {
		fmt.Fprintf(&text, "\n\tanswer %d: %q, %v (effects %d to %d)", i+1, a.value, a.err, a.before, a.after)
	}
	return text.String()
}
