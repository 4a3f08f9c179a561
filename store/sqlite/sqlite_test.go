package sqlite_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store/sqlite"
)

func TestContract(t *testing.T) {
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[*sql.Tx] { return subject(t, open(t)) })
}

func TestContractOnAPlainDatabase(t *testing.T) {
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[*sql.Tx] { return subject(t, plain(t)) })
}

// subject has less patience than users have, because the suite often has a
// transaction wait for itself.
func subject(t testing.TB, db *sql.DB) semeltest.Subject[*sql.Tx] {
	s := sqlite.New(db)
	s.SetPatience(200 * time.Millisecond)
	return semeltest.Subject[*sql.Tx]{
		Store:   s,
		Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, db, key) },
	}
}
