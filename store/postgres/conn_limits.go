package postgres

import (
	"context"
	"errors"
	"fmt"
)

// errNoRoom means that a session would take a connection that the pool may need.
var errNoRoom = errors.New("semel/postgres: the server has no room for another session")

// sqlRoom is the number of further connections that the server allows this role in
// this database.
const sqlRoom = `SELECT least(
CASE WHEN r.rolconnlimit >= 0 THEN r.rolconnlimit - (SELECT count(*) FROM pg_stat_activity WHERE usesysid = r.oid) END,
CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit - (SELECT numbackends FROM pg_stat_database WHERE datid = d.oid) END,
current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
- coalesce(current_setting('reserved_connections', true)::bigint, 0) - (SELECT sum(numbackends) FROM pg_stat_database)::bigint)::bigint
FROM pg_roles r CROSS JOIN pg_database d WHERE r.rolname = session_user AND d.datname = current_database()`

// leavesRoom checks that the session leaves room for as many other connections.
func (s *session) leavesRoom(ctx context.Context, others int64) error {
	var room int64
	if err := s.conn.QueryRow(ctx, sqlRoom).Scan(&room); err != nil {
		return fmt.Errorf("find room for a session: %w", err)
	}
	if room < others {
		return errNoRoom
	}
	return nil
}
