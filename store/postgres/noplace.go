package postgres

import (
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// ofRecords tells whether a table that the server names in an error is the one of
// the records, or one of its partitions.
func ofRecords(table string) bool { return strings.HasPrefix(table, "semel_records") }

// hasNoPlace tells whether a record could not be written because its time is that
// of no partition, or of one that takes none any more. The server says it as a
// check that failed: without a name in the first case.
func hasNoPlace(err error) bool {
	e := errorOf(err)
	if e == nil || e.Code != codeCheck || !ofRecords(e.TableName) {
		return false
	}
	return e.ConstraintName == "" || e.ConstraintName == sealConstraint || e.ConstraintName == firstBound
}

// withoutPlace is the error of a last change that has no place. A new record has
// none for good. One that stands is in a partition of which somebody is finding
// out that it has unfinished records, so it is in conflict with that.
func withoutPlace(last *store.Change, err error) error {
	if kindOf(last) == create {
		return fmt.Errorf("record %s: %w: %w", last.To.ID, store.ErrNoPlace, err)
	}
	return fmt.Errorf("record %s: %w: %w", last.To.ID, store.ErrConflict, err)
}
