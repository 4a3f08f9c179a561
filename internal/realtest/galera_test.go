package realtest_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// openCluster opens a pool at each node, on a new database with an empty table "kept".
// Each statement sees what was committed before it at any node.
func openCluster(t *testing.T, c *realtest.GaleraCluster) []*sql.DB {
	t.Helper()
	sources := c.Database(t)
	pools := make([]*sql.DB, 0, len(sources))
	for _, dsn := range sources {
		pools = append(pools, openMySQL(t, dsn+"?wsrep_sync_wait=15"))
	}
	must(t, pools[0], "CREATE TABLE kept (id int PRIMARY KEY)")
	return pools
}

// TestGaleraSurvivesEachNode: what is committed at one node is there at the others while
// a node is killed or isolated, and at that node afterwards. It is there, too, after all nodes
// were killed.
func TestGaleraSurvivesEachNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	c := realtest.OwnGalera(t)
	pools := openCluster(t, c)
	must(t, pools[0], "INSERT INTO kept VALUES (1)")
	want := 1
	for i, n := range c.Nodes() {
		how, back := "kill", func() { n.Start(t) }
		if i == 1 {
			how, back = "isolate", n.Isolate(t)
		} else {
			n.Kill()
		}
		want++
		insert := fmt.Sprintf("INSERT INTO kept VALUES (%d)", want)
		realtest.Poll(t, how+": the other nodes go on", func() bool {
			_, err := pools[(i+1)%len(pools)].ExecContext(t.Context(), insert)
			return err == nil
		})
		awaitKept(t, pools[(i+2)%len(pools)], want)
		back()
		awaitKept(t, pools[i], want)
	}
	for _, n := range c.Nodes() {
		n.Kill()
	}
	c.Start(t)
	for _, db := range pools {
		awaitKept(t, db, want)
	}
}

// awaitKept waits until a node reads so many rows: while the cluster finds out which
// nodes it has, reads that wait for other nodes fail.
func awaitKept(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	realtest.Poll(t, fmt.Sprintf("%d rows", want), func() bool {
		var got int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM kept").Scan(&got)
		return err == nil && got == want
	})
}
