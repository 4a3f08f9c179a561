package postgres

import (
	"context"
	"errors"
	"fmt"
)

// errNoRoom says that a session would take a connection that the pool may want.
var errNoRoom = errors.New("semel/postgres: the server has no room for another session")

// sqlRoom is how many more connections the server lets this role have in this database.
const sqlRoom = `SELECT least(
CASE WHEN r.rolconnlimit >= 0 THEN r.rolconnlimit - (SELECT count(*) FROM pg_stat_activity WHERE usesysid = r.oid) END,
CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit - (SELECT numbackends FROM pg_stat_database WHERE datid = d.oid) END,
current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
- coalesce(current_setting('reserved_connections', true)::bigint, 0) - (SELECT sum(numbackends) FROM pg_stat_database)::bigint)::bigint
FROM pg_roles r CROSS JOIN pg_database d WHERE r.rolname = session_user AND d.datname = current_database()`

// leaves finds out whether there is room for so many connections beside the session.
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
