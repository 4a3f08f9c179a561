package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semelgo/semel"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// A group is created once, however often the request is repeated, because the group
// and the record of its key are committed together.
func Example() {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := createGroups(context.Background(), filepath.Join(dir, "chat.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// group 1, replayed false
	// group 1, replayed true
	// group 1, replayed true
	// 1 group
}

func createGroups(ctx context.Context, path string) error {
	db, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT NOT NULL)`); err != nil {
		return err
	}
	engine, err := semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{})
	if err != nil {
		return err
	}
	createGroup := semel.Define("create_group", semel.OperationOptions[string]{})
	for range 3 {
		call := createGroup.Call(semel.ScopeOf("ann"), "a key of ann's choice", "friends")
		id, replayed, err := semel.DoTx(ctx, engine, call, func(ctx context.Context, tx *sql.Tx) (int64, error) {
			result, err := tx.ExecContext(ctx, `INSERT INTO groups (name) VALUES (?)`, "friends")
			if err != nil {
				return 0, err
			}
			return result.LastInsertId()
		})
		if err != nil {
			return err
		}
		fmt.Printf("group %d, replayed %v\n", id, replayed)
	}
	var groups int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM groups`).Scan(&groups); err != nil {
		return err
	}
	fmt.Println(groups, "group")
	return engine.Close(ctx)
}
