package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
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

// TestUpWithAMinimalDriver: any driver is sufficient.
func TestUpWithAMinimalDriver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	open(t, path)
	beneath := check.Must(sql.Open("sqlite", ""))(t)
	defer beneath.Close()
	db := sql.OpenDB(minimalConnector{beneath.Driver(), path})
	defer db.Close()
	mustExec(t, db, `CREATE TABLE semel_guard (mine INTEGER)`)
	check.Fails(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}), "Up with another table of that name")
	mustExec(t, db, `DROP TABLE semel_guard`)
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	mustBeMigratedOnce(t, db)
}
