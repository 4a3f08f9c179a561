package storetest

import (
	"fmt"

	"github.com/semelgo/semel/store"
)

func showToken(t store.Token) string {
	if t == (store.Token{}) {
		return "nothing"
	}
	return fmt.Sprintf("%v(%d,%016x)", t.State, t.Attempt, t.Owner)
}

func show(c store.Change) string {
	due := ""
	if c.IfDue {
		due = ", if due"
	}
	return fmt.Sprintf("Swap(%s to %s%s)", showToken(c.If), showToken(c.To.Token), due)
}

func showAnswer(s store.SwapResult) string {
	switch {
	case s.Err != nil:
		return fmt.Sprintf("Err %q", s.Err)
	case s.Busy:
		return "Busy"
	default:
		return showToken(s.Token)
	}
}
