package server

import (
	"context"
	"io"
	"strings"
)

// The types with which tests assemble a server.
type (
	Hooks        = hooks
	TransactFunc = transactFunc
	CreateFunc   = createFunc
	WelcomeFunc  = welcomeFunc
	ImportFunc   = importFunc
	Welcome      = welcome
	Imported     = imported
)

// ErrCommit is the error of a transaction whose commit has an unknown outcome.
var ErrCommit = errCommit

// Run is Main with hooks.
func Run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer, to Hooks) int {
	return run(ctx, args, getenv, stdout, stderr, to)
}

// Retention is the retention that the description declares.
const Retention = retention

// Endpoints lists the methods and paths that the server answers.
func Endpoints() ([]string, error) {
	s := &app{config: config{retention: retention}, operations: newOperations(config{mode: modeInline, retention: retention}, probes{})}
	endpoints, err := s.endpoints()
	var all []string
	for path, m := range endpoints {
		for method := range m {
			all = append(all, method+" "+strings.Replace(path, "...}", "}", 1))
		}
	}
	return all, err
}

// Description is the OpenAPI description.
var Description = description
