package realtest

import (
	"database/sql"
	"strconv"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// A node of a cluster writes the changes of the others with threads that look like
// connections to the database, and that it refuses to end.
//
//nolint:tparallel // one after the other: each drop is to meet the changes of its own database
func TestDropWhileChangesArrive(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for i := range 20 {
		t.Run(strconv.Itoa(i), func(t *testing.T) { // its database is dropped at its end
			db := check.Must(sql.Open("mysql", Galera(t).Database(t)[2]))(t)
			_, err := db.ExecContext(t.Context(), "CREATE TABLE x (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(2000))")
			check.Require(t, err)
			var writers sync.WaitGroup
			for range 8 {
				writers.Go(func() {
					for range 20 {
						_, err := db.ExecContext(t.Context(), "INSERT INTO x (v) VALUES (repeat('a', 2000))")
						check.NoError(t, err)
					}
				})
			}
			writers.Wait()
			check.Require(t, db.Close())
		})
	}
}
