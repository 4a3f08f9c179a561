package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store/postgres"
)

// withPartitions runs fn with the partitions of the database that c names.
func withPartitions(c *cobra.Command, o postgres.PartitionOptions, fn func(ctx context.Context, p *postgres.Partitions) error) error {
	return withDB(c, func(ctx context.Context, db *database) error {
		p, err := partitionsOf(db, o)
		if err != nil {
			return err
		}
		return fn(ctx, p)
	})
}

// partitionsOf returns the partitions of db.
func partitionsOf(db *database, o postgres.PartitionOptions) (*postgres.Partitions, error) {
	if db.partitions == nil {
		return nil, exit.Usagef("--%s: partitions are for PostgreSQL; semel purge works on all databases", flagDB)
	}
	p, err := db.partitions(o)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return p, nil
}

// partitionsView is the output of `partitions list --json`.
type partitionsView struct {
	Partitions []partitionView `json:"partitions"`
}

// partitionView is the JSON view of a partition.
type partitionView struct {
	Partition string     `json:"partition"`      // the name of its table
	From      *time.Time `json:"from,omitempty"` // nil for the first partition, which holds all before To and all keys without a time
	To        time.Time  `json:"to"`
	Sealed    bool       `json:"sealed"`   // its drop is in progress, or was interrupted
	Detached  bool       `json:"detached"` // as Sealed, and no longer part of the table
}

func partitionOf(p *postgres.Partition) partitionView {
	v := partitionView{Partition: p.Name, To: p.To, Sealed: p.Sealed, Detached: p.Detached}
	if !p.First() {
		v.From = &p.From
	}
	return v
}

// cells returns v as cells of a table.
func (v *partitionView) cells() string {
	from := "-"
	if v.From != nil {
		from = v.From.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s\t%s\t%s", v.Partition, from, v.To.Format(time.RFC3339))
}
