package sim

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// tale is the kind of answer a caller was given.
type tale uint8

const (
	toldNothing tale = iota
	toldOK
	toldReplay
	toldFailed
	toldReleased // did not happen; the key may try again
	toldUnknown
	toldInDoubt
	toldInProgress
	toldMismatch
	toldUnavailable
	toldQueued
	toldOther
	tales
)

func (t tale) String() string {
	return [tales]string{
		"nothing", "ok", "ok, replayed", "failed", "did not happen", "unknown", "in doubt", "in progress",
		"mismatch", "unavailable", "that it waits", "something else",
	}[t]
}

// told is an answer, as the caller of the engine reads it.
type told struct {
	tale  tale
	value string
	of    request
	ask   int // the how-manieth it answers
	// Of an attempt that was told that nothing happened; the epoch, of a call
	// that was enqueued.
	attempt uint32
	epoch   int
}

func tell(value string, replayed bool, err error) told {
	var attempt *semel.AttemptError
	var failure *semel.Failure
	switch {
	case err == nil && replayed:
		return told{tale: toldReplay, value: value}
	case err == nil:
		return told{tale: toldOK, value: value}
	case errors.As(err, &attempt) && attempt.Verdict == store.Unknown, errors.Is(err, semel.ErrOutcomeUnknown):
		return told{tale: toldUnknown}
	case errors.As(err, &attempt):
		return told{tale: toldReleased}
	case errors.As(err, &failure):
		return told{tale: toldFailed, value: failure.Message}
	case errors.Is(err, semel.ErrInDoubt):
		return told{tale: toldInDoubt}
	case errors.Is(err, semel.ErrInProgress):
		return told{tale: toldInProgress}
	case errors.Is(err, semel.ErrMismatch):
		return told{tale: toldMismatch}
	case errors.Is(err, semel.ErrUnavailable):
		return told{tale: toldUnavailable}
	default:
		return told{tale: toldOther, value: err.Error()}
	}
}

func (t told) ok() bool { return t.tale == toldOK || t.tale == toldReplay }

func (t told) String() string {
	if t.value == "" {
		return t.tale.String()
	}
	return fmt.Sprintf("%v: %q", t.tale, t.value)
}

func (t told) digest(d digest) digest {
	d = d.add(uint64(t.of.row)).text(t.of.fp)
	return d.add(uint64(t.tale)).text(t.value).add(uint64(t.ask)).add(uint64(t.attempt)).add(uint64(t.epoch))
}
