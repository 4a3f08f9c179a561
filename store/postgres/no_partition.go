package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// isOfRecords reports whether the server names the table of records, or one of its
// partitions, in an error.
func (t *tables) isOfRecords(e *pgconn.PgError) bool {
	return e.SchemaName == t.schema && strings.HasPrefix(e.TableName, t.prefix+"records")
}

// recordExists reports whether a create failed because the record exists, and not
// because of another unique key, which the application may have added to this table
// or to a table that a trigger writes. It compares the key's columns, which do not
// depend on the language of messages. A role that may not read the columns gets
// only the constraint's name.
func (t *tables) recordExists(err error) bool {
	e := errorOf(err)
	if e == nil || e.Code != codeUnique || !t.isOfRecords(e) {
		return false
	}
	if columns, _, told := strings.Cut(e.Detail, ")=("); told {
		return strings.HasSuffix(columns, "(id")
	}
	return strings.Contains(e.ConstraintName, "_pkey")
}

// hasNoPartition reports whether a record could not be written because there is no
// partition for its time, or because the partition is sealed. Both are a failed check;
// in the first case it has no name.
func (t *tables) hasNoPartition(err error) bool {
	e := errorOf(err)
	if e == nil || e.Code != codeCheck || !t.isOfRecords(e) {
		return false
	}
	return e.ConstraintName == "" || e.ConstraintName == sealConstraint || e.ConstraintName == firstBound
}

// noPartitionError returns the error of a last change without a partition. For a
// new record that is final. An existing record is in a partition that another
// process is sealing, and will keep because of this record, so the error is a
// conflict.
func noPartitionError(last *store.Change, err error) error {
	mark := store.ErrConflict
	if kindOf(last) == create {
		mark = store.ErrNoPartition
	}
	return fmt.Errorf("record %s: %w: %w", last.To.ID, mark, err)
}
