package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store/postgres"
)

// An answer to COMMIT is certain only if it is on the list, and only if it is the
// server's word about the statement.
func TestRollsBack(t *testing.T) {
	t.Parallel()
	said := func(severity, code string) error {
		return fmt.Errorf("commit: %w", &pgconn.PgError{SeverityUnlocalized: severity, Severity: severity, Code: code})
	}
	for _, row := range []struct {
		err  error
		want bool
	}{
		{said("ERROR", "23503"), true}, // a deferred foreign key
		{said("ERROR", "23505"), true},
		{said("ERROR", "22012"), true},
		{said("ERROR", "25P02"), true},
		{said("ERROR", "26000"), true}, // the prepared statement was dropped
		{said("ERROR", "40001"), true},
		{said("ERROR", "40P01"), true},
		{said("ERROR", "40002"), false}, // not known to be sent
		{said("ERROR", "40003"), false}, // unknown by its own word
		{said("ERROR", "42P01"), true},
		{said("ERROR", "55P03"), true},
		{said("ERROR", "57014"), true},
		{said("ERROR", "P0001"), true},
		{said("FEHLER", "23503"), false},
		{&pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "23503"}, true},
		{&pgconn.PgError{Severity: "ERROR", Code: "23503"}, true}, // before PostgreSQL 9.6, and poolers
		{said("FATAL", "23503"), false},
		{said("FATAL", "57P01"), false}, // the session was ended, perhaps after the COMMIT
		{said("FATAL", "57P02"), false},
		{said("FATAL", "25P03"), true}, // only ever before one
		{said("FATAL", "08P01"), false},
		{said("ERROR", "08006"), false},
		{said("ERROR", "08P01"), false},
		{said("ERROR", "53100"), false}, // the disk is full
		{said("ERROR", "57P01"), false},
		{said("ERROR", "58030"), false},
		{said("ERROR", "XX000"), false},
		{said("PANIC", "XX000"), false},
		{said("ERROR", ""), false},
		{io.ErrUnexpectedEOF, false},
		{pgconn.ErrConnClosed, false}, // which the driver calls safe to retry
		{context.DeadlineExceeded, false},
		{errors.New("something else"), false},
	} {
		if got := postgres.RollsBack(row.err); got != row.want {
			t.Errorf("RollsBack(%#v) = %v, want %v", row.err, got, row.want)
		}
	}
}
