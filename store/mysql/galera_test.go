package mysql_test

import (
	"context"
	"database/sql"
	"net"
	counter "sync/atomic"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/storetest"
)

// TestContractOnGalera: all connections lead to one node, or each new one to another
// node.
func TestContractOnGalera(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	ways := map[string]func(t *testing.T, nodes []string) *sql.DB{
		"one node":  func(t *testing.T, nodes []string) *sql.DB { return connect(t, nodes[0]) },
		"all nodes": connectInTurn,
	}
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, clusterDatabase(t, realtest.Galera(t)))
			storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] { return subject(t, db, db) })
		})
	}
}

// clusterDatabase returns the data source names, at each node, of a new database with
// the schema and a table of effects. Galera replicates only tables with a primary key
// in the order of their rows.
func clusterDatabase(t testing.TB, c *realtest.GaleraCluster) []string {
	t.Helper()
	nodes := c.Database(t)
	db := connect(t, nodes[0])
	check.Require(t, migrate.Up(t.Context(), db, migrate.Options{}), "migrate")
	mustExec(t, db, `CREATE TABLE effects (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k VARCHAR(200) NOT NULL)`)
	return nodes
}

// connectInTurn opens a database whose connections lead to the nodes in turn, as a load
// balancer does.
func connectInTurn(t *testing.T, nodes []string) *sql.DB {
	t.Helper()
	c := check.Must(driver.ParseDSN(nodes[0]))(t)
	addresses := make([]string, 0, len(nodes))
	for _, dsn := range nodes {
		n := check.Must(driver.ParseDSN(dsn))(t)
		addresses = append(addresses, n.Addr)
	}
	var next counter.Uint64
	c.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr := addresses[next.Add(1)%uint64(len(addresses))]
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	db := check.Must(mysql.OpenConfig(c))(t)
	t.Cleanup(func() { db.Close() })
	return db
}
