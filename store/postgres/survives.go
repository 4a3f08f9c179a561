package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// survives returns the worst failure that loses no commit of conn to tables, and the
// reasons if that is less than a failover.
func survives(ctx context.Context, conn *pgx.Conn, tables ...string) (store.Failure, string, error) {
	reasons, err := lossyTables(ctx, conn, tables)
	if err != nil {
		return 0, "", err
	}
	off, err := weakSettings(ctx, conn)
	if err != nil {
		return 0, "", err
	}
	worst := store.PowerLoss
	if len(reasons) > 0 {
		worst = store.NoFailure
	}
	for _, s := range off {
		worst = min(worst, s.survives())
		reasons = append(reasons, s.String())
	}
	if len(reasons) > 0 {
		return worst, strings.Join(reasons, "; "), nil
	}
	return replication(ctx, conn)
}

// maxLossyTables bounds the length of the reason: a divided table may have hundreds of
// partitions, and the first ones show the cause.
const maxLossyTables = 3

// lossyTables describes the tables that lose their rows when the server crashes: unlogged and temporary ones among tables, their partitions and
// the tables that inherit from them. A partitioned table itself holds no rows, and
// before PostgreSQL 18 it can be marked as unlogged without any effect.
func lossyTables(ctx context.Context, conn *pgx.Conn, tables []string) ([]string, error) {
	const read = `WITH RECURSIVE family (oid) AS (
SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name
UNION
SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN family f ON i.inhparent = f.oid
)
SELECT format(CASE c.relpersistence WHEN 't' THEN 'table %s is temporary: each connection has its own rows'
ELSE 'table %s is unlogged: a crash of the server empties it (ALTER TABLE %1$s SET LOGGED)' END, c.oid::regclass)
FROM pg_catalog.pg_class c JOIN family f ON f.oid = c.oid
WHERE c.relpersistence = 't' OR c.relpersistence = 'u' AND c.relkind <> 'p'
ORDER BY c.oid LIMIT $2`
	rows, err := conn.Query(ctx, read, tables, maxLossyTables)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// weakSetting is a setting whose value loses commits in a crash or a failover. Source is
// where it was set, as in pg_settings.
type weakSetting struct{ Name, Value, Source string }

// weakSettings returns the settings that are off for conn, or that ALTER ROLE or ALTER
// DATABASE turned off for new connections after conn was opened. A value that the
// client or a SET gave conn goes before the latter, on other connections too.
func weakSettings(ctx context.Context, conn *pgx.Conn) ([]weakSetting, error) {
	const read = `WITH present AS (
SELECT name, setting, source FROM pg_catalog.pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
), stored AS (
SELECT DISTINCT ON (name) name, setting, source FROM (
	SELECT lower(split_part(item, '=', 1)) AS name, lower(split_part(item, '=', 2)) AS setting,
		s.setrole <> 0 AS of_role, s.setdatabase <> 0 AS of_database,
		CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'global' WHEN s.setrole = 0 THEN 'database'
			WHEN s.setdatabase = 0 THEN 'user' ELSE 'database user' END AS source
	FROM pg_catalog.pg_db_role_setting s, unnest(s.setconfig) AS item
	WHERE s.setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user))
		AND s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
) of_connection ORDER BY name, of_role DESC, of_database DESC
)
SELECT p.name, CASE WHEN p.setting = 'off' OR s.setting IS NULL THEN p.setting WHEN s.setting IN ('local', 'remote_write') THEN s.setting ELSE 'off' END AS value,
CASE WHEN p.setting = 'off' OR s.setting IS NULL THEN p.source ELSE s.source END AS source
FROM present p LEFT JOIN stored s ON s.name = p.name AND p.source NOT IN ('client', 'session')
	AND s.setting IN ('off', 'false', 'no', '0', 'local', 'remote_write')
WHERE p.setting IN ('off', 'local', 'remote_write') OR s.setting IS NOT NULL
ORDER BY p.name DESC`
	rows, err := conn.Query(ctx, read)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[weakSetting])
}

// survives is the worst failure that loses no commit with the setting.
func (s weakSetting) survives() store.Failure {
	if s.Value != "off" {
		return store.PowerLoss // a commit waits for the disk of the primary only
	}
	if s.Name == "synchronous_commit" {
		return store.NoFailure // the log is in the server's memory when it confirms a commit
	}
	return store.ProcessEnd
}

// String names the setting and the place where an operator finds it.
func (s weakSetting) String() string {
	places := map[string]string{
		"configuration file": "in the server's configuration file, or with ALTER SYSTEM",
		"command line":       "on the server's command line",
		"global":             "with ALTER ROLE ALL",
		"database":           "with ALTER DATABASE for this database",
		"user":               "with ALTER ROLE for this role",
		"database user":      "with ALTER ROLE … IN DATABASE for this role and database",
		"client":             "by the client: the connection string, PGOPTIONS or RuntimeParams",
		"session":            "with SET on the connection, for example in AfterConnect",
	}
	return fmt.Sprintf("%s is %s (set %s)", s.Name, s.Value, cmp.Or(places[s.Source], "by "+s.Source))
}
