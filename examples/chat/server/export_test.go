package server

import (
	"context"
	"io"
)

// What tests put a server together with.
type (
	Seams        = seams
	TransactFunc = transactFunc
	CreateFunc   = createFunc
)

// ErrCommit is what a transaction of the chat's database ends with when its
// commit got no clear answer.
var ErrCommit = errCommit

// Run is Main with something in between.
func Run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer, to Seams) int {
	return run(ctx, args, getenv, stdout, stderr, to)
}
