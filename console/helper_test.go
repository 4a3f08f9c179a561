package console_test

import (
	"context"
	"errors"
	"time"
)

// noRun is the function of a call that must be answered from its record.
func noRun(context.Context) (string, error) { return "", errors.New("it ran") }

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
