package task

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Count is how many tasks of one kind stand how.
type Count struct {
	Operation string
	Waiting   int64 // for a worker, or for their time
	Due       int64 // of these: those whose time has come
	Running   int64 // claimed by somebody
	Silent    int64 // of these: those whose lease is over
	Succeeded int64
	Failed    int64 // dead letters, unless somebody sends them round again
	InDoubt   int64 // they need a person
}

// Counts counts the records of operations, in their order; those that have none are
// counted too. It may read all records that the store has: it is for reports.
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
	case store.Absent: // nothing stands so
	}
}
