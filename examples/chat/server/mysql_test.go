package server_test

import (
	"path/filepath"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/mysql"
)

// newMariaDB returns a MariaDB database. In mode records the records are in an SQLite
// file.
func newMariaDB(t *testing.T, mode string) files {
	t.Helper()
	return onMySQL(t, mode, realtest.MariaDB(t).Database(t))
}

// newGalera is newMariaDB on a cluster: each server of a test uses a node of its own.
func newGalera(t *testing.T, mode string) files {
	t.Helper()
	return onMySQL(t, mode, realtest.Galera(t).Database(t)...)
}

func onMySQL(t *testing.T, mode string, sources ...string) files {
	t.Helper()
	f := files{mode: mode}
	for _, dsn := range sources {
		c, err := driver.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		f.mysql = append(f.mysql, "mysql://"+c.User+"@"+c.Addr+"/"+c.DBName)
	}
	f.dsn = sources[0]
	if mode == records {
		f.records = filepath.Join(t.TempDir(), "records.db")
	}
	return f
}

// openMySQL opens a MariaDB database that servers are using.
func openMySQL(t *testing.T, dsn string) (chatdb.DB, *mysql.Store) {
	t.Helper()
	db, err := mysql.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := mysql.New(db, mysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return chatdb.MySQL(db), s
}
