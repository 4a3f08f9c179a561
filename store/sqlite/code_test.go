package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/semelgo/semel/store/sqlite"
)

// plainCodeError is a pointer error with its code as an unsigned field.
type plainCodeError struct{ Code uint8 }

func (e *plainCodeError) Error() string { return "an error of SQLite" }

// textCodeError has a field Code that is no number.
type textCodeError struct{ Code string }

func (e textCodeError) Error() string { return e.Code }

func TestCodeOf(t *testing.T) {
	for _, row := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("database is locked"), 0}, // a text is no code
		{sql.ErrTxDone, 0},
		{codeError(261), 261},
		{fmt.Errorf("swap: %w", codeError(5)), 5},
		{errors.Join(sql.ErrTxDone, codeError(5)), 5},
		{fieldError{5, 0}, 5},
		{fieldError{5, 261}, 261},
		{fmt.Errorf("swap: %w", fieldError{5, 261}), 261},
		{&fieldError{19, 787}, 787},
		{&plainCodeError{6}, 6},
		{(*plainCodeError)(nil), 0},
		{textCodeError{"5"}, 0},
	} {
		if got := sqlite.CodeOf(row.err); got != row.want {
			t.Errorf("the code of %#v is %d, want %d", row.err, got, row.want)
		}
	}
}

func TestIsBusy(t *testing.T) {
	db := open(t)
	begin(t, db)
	conn := connect(t, db)
	mustExec(t, conn, `PRAGMA busy_timeout = 0`)
	if _, err := conn.ExecContext(t.Context(), `INSERT INTO effects VALUES ('a')`); !sqlite.IsBusy(err) {
		t.Errorf("IsBusy(%v) = false, want true", err)
	}
	if _, err := conn.ExecContext(t.Context(), `INSERT INTO nowhere VALUES ('a')`); err == nil || sqlite.IsBusy(err) {
		t.Errorf("IsBusy(%v) = true, want false", err)
	}
}
