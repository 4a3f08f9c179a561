package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// meets tells whether the table that the server names in an error is the one of the
// records, or one of its partitions.
func (t *tables) tableExistsFor(e *pgconn.PgError) bool {
	return e.SchemaName == t.schema && strings.HasPrefix(e.TableName, "semel_records")
}

// stoodAlready says that a record stood where the statement was to create one, and not
// that it met another unique key than that of IDs, which somebody has made on this table
// or on one that a trigger writes. The key's columns are told, whatever the language;
// to who may not read them, only the name that the index has from its making.
func (t *tables) recordExists(err error) bool {
	e := errorOf(err)
	if e == nil || e.Code != codeUnique || !t.tableExistsFor(e) {
		return false
	}
	if columns, _, told := strings.Cut(e.Detail, ")=("); told {
		return strings.HasSuffix(columns, "(id")
	}
	return strings.Contains(e.ConstraintName, "_pkey")
}

// hasNoPlace tells whether a record could not be written because its time is that
// of no partition, or of one that takes none any more. The server says it as a
// check that failed: without a name in the first case.
func (t *tables) hasNoPartition(err error) bool {
	e := errorOf(err)
	if e == nil || e.Code != codeCheck || !t.tableExistsFor(e) {
		return false
	}
	return e.ConstraintName == "" || e.ConstraintName == sealConstraint || e.ConstraintName == firstBound
}

// withoutPlace is the error of a last change that has no place. A new record has
// none for good. One that stands is in a partition of which somebody is finding
// out that it has unfinished records, so it is in conflict with that.
func noPartitionError(last *store.Change, err error) error {
	if kindOf(last) == create {
		return fmt.Errorf("record %s: %w: %w", last.To.ID, store.ErrNoPartition, err)
	}
	return fmt.Errorf("record %s: %w: %w", last.To.ID, store.ErrConflict, err)
}
