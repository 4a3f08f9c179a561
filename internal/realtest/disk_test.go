package realtest_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// A commit waits while the disk is held, and ends when it is released.
func TestHeldDisk(t *testing.T) {
	t.Parallel()
	disk := realtest.NewDisk(t)
	db, err := sql.Open("mysql", realtest.OwnMariaDBOn(t, disk).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE held (n INT PRIMARY KEY) ENGINE=InnoDB`); err != nil {
		t.Fatal(err)
	}
	release := disk.Hold()
	done := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), `INSERT INTO held VALUES (1)`)
		done <- err
	}()
	waits := func() bool {
		var n int
		err := db.QueryRowContext(t.Context(),
			`SELECT count(*) FROM information_schema.processlist WHERE state = 'Commit' AND info LIKE 'INSERT INTO held%'`).Scan(&n)
		return err == nil && n == 1
	}
	if err := realtest.Retry(t.Context(), waits); err != nil {
		t.Errorf("the insert does not wait for the disk: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("Exec = %v while the disk is held, want no return", err)
	default:
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("Exec = %v", err)
	}
}
