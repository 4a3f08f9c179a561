package adapter

import (
	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// CheckOperation returns why e would refuse every call of op, as a *FieldError, or nil. An
// edge calls it when it is made, so that a wrong definition is found when the program
// starts and not by the first request.
func CheckOperation(e semel.Runner, op semel.Declared) error {
	return engine.CheckOperation(engine.CoreOf(e), op)
}
