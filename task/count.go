package task

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Count is the number of tasks of one operation, by state.
type Count struct {
	Operation string
	Waiting   int64 // not claimed: due, or waiting for their time
	Due       int64 // the part of Waiting that is due
	Running   int64 // claimed by a worker
	Silent    int64 // the part of Running whose lease has expired
	Succeeded int64
	Failed    int64 // dead letters, until they are redriven
	InDoubt   int64 // need an operator
}

// Counts counts the records of the operations, and returns one Count per
// operation, in the order of the arguments. Operations without records are
// included. It may read all records of the store, so use it for reports only.
func Counts(ctx context.Context, c store.Counter, operations ...string) ([]Count, error) {
	all, err := c.Counts(ctx)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	counts := make([]Count, len(operations))
	for i, name := range operations {
		counts[i].Operation = name
		for _, n := range all {
			if n.Operation == name {
				counts[i].add(n)
			}
		}
	}
	return counts, nil
}

func (c *Count) add(n store.Count) {
	switch n.State {
	case store.Pending:
		c.Waiting, c.Due = n.Records, n.Overdue
	case store.InProgress:
		c.Running, c.Silent = n.Records, n.Overdue
	case store.Succeeded:
		c.Succeeded = n.Records
	case store.Failed:
		c.Failed = n.Records
	case store.InDoubt:
		c.InDoubt = n.Records
	case store.Absent: // no record has it
	}
}
