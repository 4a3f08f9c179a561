package server

import (
	"context"
	"io"
	"strings"
)

// What tests put a server together with.
type (
	Seams        = seams
	TransactFunc = transactFunc
	CreateFunc   = createFunc
	WelcomeFunc  = welcomeFunc
	ImportFunc   = importFunc
	Welcome      = welcome
	Imported     = imported
)

// ErrCommit is what a transaction of the chat's database ends with when its
// commit got no clear answer.
var ErrCommit = errCommit

// Run is Main with something in between.
func Run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer, to Seams) int {
	return run(ctx, args, getenv, stdout, stderr, to)
}

// Retention is what the description declares.
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

// Description is what the server says of itself.
var Description = description
