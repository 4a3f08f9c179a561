package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A transaction's own statements are few, and always the same. The driver's batches
// look each of them up by its whole text, ask the server what it returns, and keep
// books of a pipeline, which together cost the client as much as the trip. So from a
// connection's second transaction on they go past it, as those of a session do.

// usesPrepared reports whether the pool's configuration allows that: statements are
// prepared, stay prepared, and no tracer observes them.
func usesPrepared(config *pgxpool.Config) bool {
	c := config.ConnConfig
	return isUnhooked(config) && c.StatementCacheCapacity > 0 && c.Tracer == nil
}

// pooled is what a connection of the pool has of ours, whichever store uses it.
type preparedConn struct {
	conn *pgx.Conn
	// tx is how handlers see the connection's transactions. Nothing of the driver's
	// ends it, so that it serves one transaction after another; nil before the first.
	tx    pgx.Tx
	known map[string]*pgconn.StatementDescription // what is prepared, by its text
	made  int                                     // names given so far
	out   messages
	args  pgx.ExtendedQueryBuilder // of a statement that is not ours
}

const pooledKey = "github.com/semelgo/semel/store/postgres"

// pooledOf returns what was kept with the connection, nil if that is nothing.
func preparedConnOf(conn *pgx.Conn) *preparedConn {
	p, _ := conn.PgConn().CustomData()[pooledKey].(*preparedConn)
	return p
}

// pooledFor returns what is kept with the connection from now on.
func newPreparedConn(conn *pgx.Conn) *preparedConn {
	p := preparedConnOf(conn)
	if p == nil {
		p = &preparedConn{conn: conn, known: make(map[string]*pgconn.StatementDescription)}
		conn.PgConn().CustomData()[pooledKey] = p
	}
	return p
}

// prepare returns what is prepared for the text, if need be by a trip of its own.
func (p *preparedConn) prepare(ctx context.Context, text string) (*pgconn.StatementDescription, error) {
	if d := p.known[text]; d != nil {
		return d, nil
	}
	p.made++
	heard := false
	defer func() {
		if !heard { // a callback of the pool's has panicked: there is more to read
			p.lose(ctx)
		}
	}()
	d, err := p.conn.PgConn().Prepare(ctx, "semel_pooled_"+strconv.Itoa(p.made), text, nil)
	heard = true
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	p.known[text] = d
	return d, nil
}

// ready prepares the texts.
func (p *preparedConn) ready(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		if _, err := p.prepare(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// forget forgets what was prepared, because the server has. Names are not given again.
func (p *preparedConn) forget() { clear(p.known) }

// drop forgets what was prepared, and has the server forget it too.
func (p *preparedConn) drop(ctx context.Context) {
	if p.conn.PgConn().TxStatus() == outside {
		var all strings.Builder
		for _, d := range p.known {
			all.WriteString("DEALLOCATE " + d.Name + "; ")
		}
		_, _ = p.conn.PgConn().Exec(ctx, all.String()).ReadAll() // a courtesy
	}
	p.forget()
}
