package realtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
)

// galera is MariaDB with Galera, tried with 10.11 and Galera 26.4. A node that has
// missed more than the others keep copies the files of another one with rsync.
func galera() engine {
	e := mariadb()
	e.name, e.env, e.packages = "galera", "", "mariadb-server galera-4 rsync lsof"
	return e
}

// galeraLibrary is the library with which MariaDB servers form a cluster.
func galeraLibrary() string {
	for _, pattern := range []string{"/usr/lib*/galera*", "/usr/lib*/*/galera*"} {
		found, _ := filepath.Glob(filepath.Join(pattern, "libgalera_smm.so"))
		if len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

var sharedGalera struct { //nolint:gochecknoglobals // one cluster for all tests of a binary is its purpose
	once  sync.Once
	nodes []*instance
	err   error
}

// Galera gives the test the cluster that all tests of this binary share. The test may
// not end, pause or isolate a node; see [OwnGalera].
func Galera(tb testing.TB) *GaleraCluster {
	tb.Helper()
	program, library := needGalera(tb)
	s := &sharedGalera
	s.once.Do(func() { s.nodes, s.err = startGalera(context.WithoutCancel(tb.Context()), program, library, nil) })
	if s.err != nil {
		tb.Fatalf("start Galera: %v", s.err)
	}
	c := new(GaleraCluster)
	for _, p := range s.nodes {
		c.nodes = append(c.nodes, &GaleraNode{handle{t: tb, url: p.url()}})
	}
	return c
}

// OwnGalera starts a cluster of three nodes for this test alone, which the test may
// break, and which ends with the test. Settings are as for [OwnMariaDB].
func OwnGalera(tb testing.TB, settings ...string) *GaleraCluster {
	tb.Helper()
	program, library := needGalera(tb)
	nodes, err := startGalera(tb.Context(), program, library, settings)
	check.Require(tb, err, "start Galera")
	c := new(GaleraCluster)
	for _, p := range nodes {
		tb.Cleanup(func() {
			check.NoError(tb, p.close(), "end a node")
		})
		c.nodes = append(c.nodes, &GaleraNode{handle{t: tb, url: p.url(), own: p}})
	}
	return c
}

func needGalera(tb testing.TB) (program, library string) {
	tb.Helper()
	m := thisMachine()
	at, library := m.find(galera()), galeraLibrary()
	if at == nil || library == "" {
		m.missing(tb, galera(), "there is no MariaDB with Galera on this machine; on Debian: apt-get install "+galera().packages)
	}
	tb.Attr("engine", galera().name)
	return at.program, library
}

// GaleraCluster is three MariaDB servers, each of which accepts writes.
type GaleraCluster struct{ nodes []*GaleraNode }

// Nodes returns the nodes. Their order does not change.
func (c *GaleraCluster) Nodes() []*GaleraNode { return c.nodes }

// Database creates an empty database and returns its data source name at each node, as
// [MariaDBServer.Database] does. It is there at all nodes.
func (c *GaleraCluster) Database(tb testing.TB) []string {
	tb.Helper()
	first := (&MariaDBServer{c.nodes[0].handle}).Database(tb)
	_, name, _ := strings.Cut(first, "/")
	sources := make([]string, 0, len(c.nodes))
	for _, n := range c.nodes {
		Poll(tb, "the database at "+n.url, func() bool {
			var there int
			check.Require(tb, n.with(tb, func(ctx context.Context, db *sql.DB) error {
				read := "SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?"
				return db.QueryRowContext(ctx, read, name).Scan(&there)
			}), "look for the database")
			return there == 1
		})
		config := check.Must(mysqlConfig(n.url + name))(tb)
		sources = append(sources, config.FormatDSN())
	}
	return sources
}

// InTurn returns a configuration whose connections lead to the nodes in turn, as with a
// load balancer. sources are those of [GaleraCluster.Database].
func InTurn(tb testing.TB, sources []string) *driver.Config {
	tb.Helper()
	var configs []*driver.Config
	for _, source := range sources {
		c, err := driver.ParseDSN(source)
		if err != nil {
			tb.Fatal(err)
		}
		configs = append(configs, c)
	}
	var next atomic.Uint64
	c := configs[0].Clone()
	c.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		to := configs[next.Add(1)%uint64(len(configs))]
		return new(net.Dialer).DialContext(ctx, network, to.Addr)
	}
	return c
}

// Start starts all nodes after all have ended. It returns when they are synced.
func (c *GaleraCluster) Start(tb testing.TB) {
	tb.Helper()
	failed := make([]error, len(c.nodes))
	var started sync.WaitGroup
	for i, n := range c.nodes {
		if n.own == nil {
			tb.Fatal("start: the cluster is not this test's own")
		}
		started.Go(func() { failed[i] = n.own.start(tb.Context()) })
	}
	started.Wait()
	check.Require(tb, errors.Join(failed...), "start")
}

// GaleraNode is a server of a cluster. What ends or pauses it is for a cluster of
// [OwnGalera]; on another it fails the test. Start returns when the node has all that
// the cluster has committed.
type GaleraNode struct{ handle }

// Isolate cuts the node off from the others, like a network partition: its clients stay
// connected. After some seconds it refuses statements, and the others go on without it.
// The function that Isolate returns ends that and waits until the node is synced.
func (n *GaleraNode) Isolate(tb testing.TB) (heal func()) {
	tb.Helper()
	if n.own == nil {
		tb.Fatal("isolate: the node is not this test's own")
	}
	set := func(value string) {
		check.NoError(tb, n.with(tb, func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate="+value+"'")
			return err
		}), "isolate")
	}
	set("1")
	return func() {
		set("0")
		Poll(tb, "the node is synced", func() bool { return n.Status(tb, "wsrep_local_state_comment") == "Synced" })
	}
}

// Status returns the value of a variable of SHOW GLOBAL STATUS. An isolated node
// answers it, too.
func (n *GaleraNode) Status(tb testing.TB, variable string) string {
	tb.Helper()
	var name, value string
	check.NoError(tb, n.with(tb, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+variable+"'").Scan(&name, &value)
	}), "read %s", variable)
	return value
}

func (n *GaleraNode) with(tb testing.TB, fn func(context.Context, *sql.DB) error) error {
	tb.Helper()
	c, err := mysqlConfig(n.url)
	if err != nil {
		return err
	}
	return withMySQL(tb.Context(), c, fn)
}

// startGalera makes the files of three nodes and starts all at the same time. Each has
// the files of one that was a cluster of its own for a moment, so that no node copies
// from another when they start.
func startGalera(ctx context.Context, program, library string, settings []string) ([]*instance, error) {
	group := &galeraGroup{name: strings.ToLower(rand.Text()), ports: make([]galeraPorts, 3)}
	nodes := make([]*instance, 0, len(group.ports))
	abandon := func(err error) ([]*instance, error) { //nolint:contextcheck // what was started ends, also after ctx
		for _, p := range nodes {
			err = errors.Join(err, p.close())
		}
		return nil, err
	}
	for i := range group.ports {
		h, err := newServerDir(diskDir())
		if err != nil {
			return abandon(err)
		}
		n := &galeraNode{mariadb: newMariaDB(program, settings), library: library, group: group, number: i}
		nodes = append(nodes, &instance{launcher: n, serverDir: h})
		if i == 0 {
			err = n.seed(ctx, nodes[0])
		} else {
			err = n.copyOf(ctx, h, nodes[0].serverDir)
		}
		if err != nil {
			return abandon(err)
		}
	}
	const tries = 3
	var err error
	for range tries {
		if err = startTogether(ctx, group, nodes); !errors.Is(err, errInUse) {
			break
		}
	}
	if err != nil {
		return abandon(err)
	}
	return nodes, nil
}

// startTogether starts all nodes on free ports, or none.
func startTogether(ctx context.Context, group *galeraGroup, nodes []*instance) error {
	for i, p := range nodes {
		var err error
		if p.port, err = freePort(ctx); err != nil {
			return err
		}
		if group.ports[i], err = freeGaleraPorts(ctx); err != nil {
			return err
		}
	}
	failed := make([]error, len(nodes))
	var started sync.WaitGroup
	for i, p := range nodes {
		started.Go(func() { failed[i] = p.startOnce(ctx) })
	}
	started.Wait()
	err := errors.Join(failed...)
	if err == nil {
		return nil
	}
	for _, p := range nodes {
		err = errors.Join(err, p.kill()) //nolint:contextcheck // as above
	}
	return fmt.Errorf("start three nodes: %w", err)
}
