package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/storetest"
)

// TestContractOnGalera: all connections lead to one node, or each new one to another
// node. Only other nodes can answer with outdated records or refuse a commit because of
// each other.
func TestContractOnGalera(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	for name, way := range map[string]struct {
		open  func(t *testing.T, nodes []string) *sql.DB
		parts []string
	}{
		"one node":  {func(t *testing.T, nodes []string) *sql.DB { return connect(t, nodes[0]) }, storetest.CallParts()},
		"all nodes": {connectInTurn, append(storetest.CallParts(), "Time", "Zombie", "ZombieTx", "PurgeTx", "Model", "ModelTx", "Storm", "StormTx")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := way.open(t, clusterDatabase(t, realtest.Galera(t)))
			storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] { return subject(t, db, db) }, way.parts...)
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

// connectInTurn opens a database whose connections lead to the nodes in turn.
func connectInTurn(t *testing.T, nodes []string) *sql.DB {
	t.Helper()
	db := check.Must(mysql.OpenConfig(realtest.InTurn(t, nodes)))(t)
	t.Cleanup(func() { db.Close() })
	return db
}
