package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/realtest"
)

// StartQuorum starts a PostgreSQL primary with two standbys for the experiment. A commit
// waits until one of them has it on its disk. All three servers use this machine, and
// the standbys wait for their disks, too.
func (l *Lab) StartQuorum(ctx context.Context) (*Server, error) {
	s, err := l.StartPostgres(ctx, realtest.DurableOptions{Settings: []string{"wal_level=replica", "max_wal_senders=10", "wal_keep_size=64MB"}})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"s1", "s2"} {
		standby, err := realtest.StartDurableStandby(ctx, s.running, name, realtest.DurableOptions{Settings: []string{"shared_buffers=128MB"}})
		if err != nil {
			return nil, err
		}
		l.Closing(standby.Close)
	}
	return s, s.with(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{"alter system set synchronous_standby_names = 'ANY 1 (s1, s2)'", "select pg_reload_conf()"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return awaitQuorum(ctx, conn)
	})
}

// awaitQuorum waits until both standbys count for commits.
func awaitQuorum(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var followers int
	err := realtest.Retry(ctx, func() bool {
		const read = "select count(*) from pg_stat_replication where sync_state = 'quorum'"
		return conn.QueryRow(ctx, read).Scan(&followers) == nil && followers == 2
	})
	if err != nil {
		return fmt.Errorf("%d of 2 standbys follow: %w", followers, err)
	}
	return nil
}
