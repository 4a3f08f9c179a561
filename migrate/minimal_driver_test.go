package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/migrate"
)

// minimalConn hides all optional interfaces of a driver's connection.
type minimalConn struct{ driver.Conn }

type minimalConnector struct {
	beneath driver.Driver
	path    string
}

func (c minimalConnector) Driver() driver.Driver { return c.beneath }

func (c minimalConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.beneath.Open(c.path)
	return minimalConn{conn}, err
}

// TestSQLiteWithAMinimalDriver: any driver is sufficient.
func TestSQLiteWithAMinimalDriver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	open(t, path)
	beneath, err := sql.Open("sqlite", "")
	if err != nil {
		t.Fatal(err)
	}
	defer beneath.Close()
	db := sql.OpenDB(minimalConnector{beneath.Driver(), path})
	defer db.Close()
	mustExec(t, db, `CREATE TABLE semel_guard (mine INTEGER)`)
	if err := migrate.SQLite(t.Context(), db); err == nil {
		t.Error("SQLite = nil with another table of that name, want an error")
	}
	mustExec(t, db, `DROP TABLE semel_guard`)
	if err := migrate.SQLite(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	mustBeMigratedOnce(t, db)
}
