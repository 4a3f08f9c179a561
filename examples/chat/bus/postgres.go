package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxNotify is the limit of an encoded event; the server's is 8,000 bytes.
const maxNotify = 7000

// Postgres sends events by NOTIFY on connections of its own, never in the
// transactions of writers: a transaction with NOTIFY takes a lock of the whole
// server when it commits.
type Postgres struct {
	config  *pgx.ConnConfig
	channel string

	lock connectionLock // guards out, and is held while an event is published
	out  *pgx.Conn
}

// NewPostgres returns a bus on a database. It connects when it is used, directly
// and not through a PgBouncer in transaction mode. Servers with the same channel
// share their events.
func NewPostgres(url, channel string) (*Postgres, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("parse address of PostgreSQL: %w", err)
	}
	config.ConnectTimeout = dialTimeout
	return &Postgres{config: config, channel: channel, lock: newConnectionLock()}, nil
}

// gap replaces a push that is too large: the client then reads the change from the
// database.
type gap struct {
	Push   string `json:"push"`
	Group  string `json:"group"`
	Change int64  `json:"change"`
}

// Publish sends an event. Its payload is replaced by a push "gap" if it is too
// large, and many users are sent in several events.
func (p *Postgres) Publish(ctx context.Context, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	switch {
	case len(body) <= maxNotify:
		return p.notify(ctx, string(body))
	case len(e.Payload) > maxNotify/10:
		if e.Payload, err = json.Marshal(gap{"gap", strings.TrimPrefix(e.Topic, GroupTopic("")), e.Change}); err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		return p.Publish(ctx, e)
	case len(e.Users)+len(e.Removed) > 1:
		first, second := e, e
		first.Users, second.Users = halves(e.Users)
		first.Removed, second.Removed = halves(e.Removed)
		if err := p.Publish(ctx, first); err != nil {
			return err
		}
		return p.Publish(ctx, second)
	default:
		return fmt.Errorf("event %s has %d bytes", e.ID, len(body))
	}
}

func halves(users []int64) (first, second []int64) { return users[:len(users)/2], users[len(users)/2:] }

// notify sends a notification. After an error the next one connects again.
func (p *Postgres) notify(ctx context.Context, payload string) error {
	if err := p.lock.take(ctx); err != nil {
		return err
	}
	defer p.lock.release()
	if p.out == nil || p.out.IsClosed() {
		err := p.lock.connect(func() (err error) {
			p.out, err = pgx.ConnectConfig(ctx, p.config)
			return err
		})
		if err != nil {
			return fmt.Errorf("connect to PostgreSQL: %w", err)
		}
	}
	if _, err := p.out.Exec(ctx, "select pg_notify($1, $2)", p.channel, payload); err != nil {
		closeConn(ctx, p.out)
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

// Close closes the connection of Publish. Subscribe ends with its context.
func (p *Postgres) Close() {
	_ = p.lock.take(context.Background())
	defer p.lock.release()
	if p.out != nil {
		closeConn(context.Background(), p.out)
	}
}

// closeConn also closes after ctx has ended.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// pingInterval is how long the listening connection may be quiet before it is
// checked. A connection may be lost without an error.
const pingInterval = 15 * time.Second

// Subscribe implements [Bus].
func (p *Postgres) Subscribe(ctx context.Context, f func(Event)) error {
	return reconnect(ctx, func() (connected bool, err error) {
		conn, err := pgx.ConnectConfig(ctx, p.config)
		if err != nil {
			return false, err
		}
		defer closeConn(ctx, conn)
		if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{p.channel}.Sanitize()); err != nil {
			return false, err
		}
		f(Event{Type: Missed})
		for {
			if err := receive(ctx, conn, f); err != nil {
				return true, err
			}
		}
	})
}

// receive handles the next notification, or checks a quiet connection.
func receive(ctx context.Context, conn *pgx.Conn, f func(Event)) error {
	quiet, cancel := context.WithTimeout(ctx, pingInterval)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	switch {
	case err == nil:
		dispatch([]byte(n.Payload), f)
		return nil
	case quiet.Err() == nil || ctx.Err() != nil || conn.IsClosed():
		return err
	}
	check, end := context.WithTimeout(ctx, dialTimeout)
	defer end()
	return conn.Ping(check)
}
