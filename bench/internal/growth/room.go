package growth

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/bench/internal/lab"
)

// space is the upper bound of the bytes that a record needs while a table is
// filled: in the table and its indexes, and as much in the log.
const space = 1250

// room returns an error if the disk has no room for n records. A full disk would
// break more than the measurement.
func room(ctx context.Context, l *lab.Lab, records int) error {
	server, err := l.Postgres(ctx)
	if err != nil {
		return err
	}
	free, err := server.Free(ctx)
	if err != nil {
		return err
	}
	return fits(records, free)
}

func fits(records int, free int64) error {
	if need := int64(records) * space; need > free {
		return fmt.Errorf("it takes %d GB of disk, and %d are free", need/1e9, free/1e9)
	}
	return nil
}
