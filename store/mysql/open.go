package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	mysql "github.com/go-sql-driver/mysql"
)

const (
	// maxOwnConns limits the store's own connections, which it uses for single
	// statements and batches only, never during a handler.
	maxOwnConns = 16
	ownIdleTime = time.Minute

	// idleTransaction is a setting of MariaDB's, and its default in seconds. Without a limit a
	// stopped process would keep the locks of its transactions until the server gives its
	// connections up, by default after eight hours.
	idleTransaction        = "idle_transaction_timeout"
	defaultIdleTransaction = 30

	// syncWait lets all statements of a Galera node wait until it has what was committed
	// on other nodes before.
	syncWait = "7"
)

// Open opens a database by the driver's data source name, such as
// "user:password@tcp(127.0.0.1:3306)/database". It does not connect yet. The name may
// have the driver's parameters, except clientFoundRows, because the store needs the
// number of changed rows; multiStatements is not needed. Arguments of statements are
// always interpolated by the driver (interpolateParams), which saves round trips.
//
// After a deadlock, or the loss of the connection, the transactions of the database
// refuse every statement until they are rolled back. Without that, MySQL would commit
// the following statements one by one.
//
// MariaDB ends a transaction of the database after 30 seconds without a statement, so that a
// stopped process does not hold its locks for longer. The parameter
// idle_transaction_timeout=N in the name sets another number of seconds; zero is no limit.
// MySQL has no such limit.
//
// Closing the database closes the store's own connections, too.
func Open(name string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(name)
	if err != nil {
		return nil, fmt.Errorf("open mysql database: %w", err)
	}
	return OpenConfig(c)
}

// OpenConfig is [Open] with a configuration of the driver.
func OpenConfig(c *mysql.Config) (*sql.DB, error) {
	c = c.Clone()
	switch {
	case c.ClientFoundRows:
		return nil, errors.New("open mysql database: clientFoundRows is true: the store needs the number of changed rows")
	case c.DBName == "":
		return nil, errors.New("open mysql database: DBName is empty: name the database of the tables")
	case c.DialFunc == nil && c.Net != "tcp" && c.Net != "unix":
		return nil, fmt.Errorf("open mysql database: network %q is not tcp or unix: set Config.DialFunc", c.Net)
	case c.DialFunc == nil:
		c.DialFunc = (&net.Dialer{}).DialContext
	}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if of, ok := ctx.Value(connKey{}).(*session); ok && err == nil {
			of.net = conn
		}
		return conn, err
	}
	c.InterpolateParams = true
	inner, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("open mysql database: %w", err)
	}
	_, chosen := c.Params[idleTransaction]
	shared := &server{limitsIdle: chosen}
	own := sql.OpenDB(&connector{inner: inner, server: shared, own: true})
	own.SetMaxOpenConns(maxOwnConns)
	own.SetMaxIdleConns(maxOwnConns)
	own.SetConnMaxIdleTime(ownIdleTime)
	return sql.OpenDB(&connector{inner: inner, server: shared, lanes: own}), nil
}

// connector opens the connections of the application's pool, and of the store's own
// pool.
type connector struct {
	inner  driver.Connector
	server *server
	lanes  *sql.DB // the store's own pool; nil in the connector of that pool
	own    bool
}

// connKey is the key of the context by which a session gets its network connection.
type connKey struct{}

// Connect opens a connection.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	s := &session{}
	conn, err := c.inner.Connect(context.WithValue(ctx, connKey{}, s))
	if err != nil {
		return nil, err
	}
	s.driverConn = conn.(driverConn)
	if err := c.setUp(ctx, s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// setUp makes the settings of a connection.
func (c *connector) setUp(ctx context.Context, s *session) error {
	f, err := c.server.read(ctx, s)
	if err != nil {
		return err
	}
	var set []string
	if f.galera {
		// Otherwise a node does not see yet what another node has committed.
		set = append(set, `wsrep_sync_wait = `+syncWait)
		// A node would run an aborted statement again, also one that has sent a result
		// already: the driver would wait for packets that never come.
		set = append(set, `wsrep_retry_autocommit = 0`)
	}
	if f.mariadb && !c.server.limitsIdle {
		set = append(set, fmt.Sprintf(`%s = %d`, idleTransaction, defaultIdleTransaction))
	}
	if c.own {
		if _, err := s.ExecContext(ctx, `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`, nil); err != nil {
			return fmt.Errorf("set the isolation level: %w", err)
		}
		set = append(set, fmt.Sprintf(`innodb_lock_wait_timeout = %d`, f.seconds(noWait)),
			`sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'`, `autocommit = 1`)
	}
	if len(set) > 0 {
		text := `SET SESSION ` + strings.Join(set, `, `)
		if _, err := s.ExecContext(ctx, text, nil); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// Driver returns the connector itself, by which New finds the store's own pool.
func (c *connector) Driver() driver.Driver { return opened{c.inner.Driver(), c} }

// Close closes the store's own pool, when the application's pool is closed.
func (c *connector) Close() error {
	if c.lanes == nil {
		return nil
	}
	return c.lanes.Close()
}

// opened is the driver of a database that Open has opened.
type opened struct {
	driver.Driver

	by *connector
}

// server has what the connections of one database know about their server.
type server struct {
	known      atomic.Pointer[dialect]
	limitsIdle bool // the application has chosen the limit of idle transactions
}

// dialect has properties of a server that its statements depend on.
type dialect struct {
	mariadb bool // else MySQL
	galera  bool
	binlog  bool // the binary log is on

	// flushesLate: a commit is visible before it is on disk.
	flushesLate bool

	maxBytes int // of the outcomes and inputs of one statement
}

func (v *server) read(ctx context.Context, s *session) (*dialect, error) {
	if f := v.known.Load(); f != nil {
		return f, nil
	}
	rows, err := s.QueryContext(ctx, `SHOW VARIABLES WHERE variable_name IN ('version', 'wsrep_on', 'log_bin', 'max_allowed_packet')`, nil)
	if err != nil {
		return nil, fmt.Errorf("read the server's version: %w", err)
	}
	defer rows.Close()
	f := &dialect{}
	for row := make([]driver.Value, 2); ; {
		if err := rows.Next(row); err != nil {
			break
		}
		f.note(fmt.Sprintf("%s", row[0]), fmt.Sprintf("%s", row[1]))
	}
	// With a binary log the order of two logs is kept, and the engine commits last.
	f.flushesLate = !f.binlog
	v.known.Store(f)
	return f, nil
}
