package semeltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// answer is what one caller of a key was told.
type answer struct {
	value string
	err   error
	// before and after are the key's effects when the caller asked, and once it
	// had its answer and nothing was under way for it any more. They are equal
	// when others were asking meanwhile.
	before, after int
}

// history is all that is known of one key when everybody has been answered.
type history struct {
	answers []answer
	effects int          // committed in the end
	stands  store.Record // in the end
	// repeats says that the policy allows an effect per attempt.
	repeats bool
}

// broken returns what the history breaks, by name.
func (h history) broken() []string {
	var broken []string
	for name, holds := range map[string]bool{
		"one effect per key":            h.effects <= h.most(),
		"told ok: it stands":            !h.any(isOK) || h.stands.State == store.Succeeded && h.effects > 0,
		"told failed: no effect":        !h.any(isFailure) || h.stands.State == store.Failed && h.effects == 0,
		"told not committed: no effect": !h.any(effectAfterAll),
		"all ok answers are equal":      h.sameOK(),
	} {
		if !holds {
			broken = append(broken, name)
		}
	}
	return broken
}

func (h history) most() int {
	if h.repeats {
		return int(h.stands.Attempt)
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

// isFailure says that the caller was told the stored failure.
func isFailure(a answer) bool {
	_, failed := errors.AsType[*semel.Failure](a.err)
	attempt, released := errors.AsType[*semel.AttemptError](a.err)
	return failed && (!released || attempt.State == store.Failed)
}

func effectAfterAll(a answer) bool {
	return a.err != nil && semel.VerdictOf(a.err) == store.NotCommitted && a.after > a.before
}

// final says that asking again gives the same answer.
func (a answer) final() bool {
	return isOK(a) || isFailure(a) || errors.Is(a.err, semel.ErrInDoubt)
}

func (h history) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d effects, %s stands", h.effects, showToken(h.stands.Token))
	for i, a := range h.answers {
		fmt.Fprintf(&text, "\n\tanswer %d: %q, %v (effects %d to %d)", i+1, a.value, a.err, a.before, a.after)
	}
	return text.String()
}
