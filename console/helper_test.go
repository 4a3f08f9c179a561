package console_test

import (
	"context"
	"errors"
)

// noRun is the function of a call that must be answered from its record.
func noRun(context.Context) (string, error) { return "", errors.New("it ran") }
