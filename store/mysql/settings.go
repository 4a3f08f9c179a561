package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/semelgo/semel/store"
)

// leastPacket is the least max_allowed_packet: a record with the largest input and
// outcome, in which each byte needs two, and the other fields.
const leastPacket = 8 << 20

// settings are the server's variables as a connection of the application's pool has
// them.
type settings map[string]string

// readSettings reads the variables that the store depends on.
func (s *Store) readSettings(ctx context.Context) (settings, error) {
	const read = `SHOW VARIABLES WHERE variable_name IN ('version', 'max_allowed_packet', 'character_set_client', 'sql_mode',
'innodb_rollback_on_timeout', 'binlog_format', 'log_bin', 'sync_binlog', 'read_only',
'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_flush_method', 'wsrep_on', 'wsrep_sync_wait')`
	rows, err := s.db.QueryContext(ctx, read)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := settings{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, rows.Err()
}

// check returns why the store cannot work with the settings. The error names the
// setting and its value.
func (v settings) check() error {
	packet, _ := strconv.Atoi(v["max_allowed_packet"])
	modes := strings.Split(v["sql_mode"], ",")
	forbidden := func(mode string) bool { return slices.Contains(modes, mode) }
	switch {
	case !v.recent():
		return fmt.Errorf("version is %s: MariaDB 10.6 or MySQL 8.0 is needed", v["version"])
	case packet < leastPacket:
		return fmt.Errorf("max_allowed_packet is %d: the store needs at least %d", packet, leastPacket)
	case slices.Contains([]string{"big5", "cp932", "gb18030", "gb2312", "gbk", "sjis"}, v["character_set_client"]):
		return fmt.Errorf("character_set_client is %s, in which a quote can be part of a character: use utf8mb4", v["character_set_client"])
	case forbidden("ORACLE") || forbidden("EMPTY_STRING_IS_NULL"):
		return fmt.Errorf("sql_mode is %s on the connections of this *sql.DB: ORACLE and EMPTY_STRING_IS_NULL change the meaning of the store's statements", v["sql_mode"])
	case v["innodb_rollback_on_timeout"] == "ON":
		return errors.New("innodb_rollback_on_timeout is ON, so that a lock wait ends a transaction and later statements are committed one by one: set it OFF")
	case v["log_bin"] == "ON" && v["binlog_format"] == "STATEMENT":
		return errors.New("binlog_format is STATEMENT, with which InnoDB refuses read committed: set it to ROW or MIXED")
	default:
		return nil
	}
}

// recent reports whether the server is new enough.
func (v settings) recent() bool {
	var major, minor int
	if n, _ := fmt.Sscanf(v["version"], "%d.%d", &major, &minor); n < 2 {
		return false
	}
	if strings.Contains(v["version"], "MariaDB") {
		return major > 10 || major == 10 && minor >= 6
	}
	return major >= 8
}

// survives returns the worst failure that loses no commit, and the reasons if that is
// less than PowerLoss.
func (v settings) survives() (store.Failure, string) {
	worst := store.PowerLoss
	var reasons []string
	lossy := func(survives store.Failure, because string) {
		worst = min(worst, survives)
		reasons = append(reasons, because)
	}
	switch flush := v["innodb_flush_log_at_trx_commit"]; flush {
	case "1", "3":
	case "2":
		lossy(store.ProcessEnd, "innodb_flush_log_at_trx_commit is 2: the log reaches the disk once a second")
	default:
		lossy(store.NoFailure, "innodb_flush_log_at_trx_commit is "+flush+": the log leaves the server's memory once a second")
	}
	if v["log_bin"] == "ON" && v["sync_binlog"] != "1" {
		lossy(store.ProcessEnd, "sync_binlog is "+v["sync_binlog"]+" with log_bin ON: the recovery rolls back what is not in the binary log")
	}
	if dw := v["innodb_doublewrite"]; dw == "OFF" || dw == "DETECT_ONLY" {
		lossy(store.ProcessEnd, "innodb_doublewrite is "+dw+": a power loss can leave half-written pages")
	}
	if v["innodb_flush_method"] == "nosync" {
		lossy(store.ProcessEnd, "innodb_flush_method is nosync: nothing is synced to the disk")
	}
	return worst, strings.Join(reasons, "; ")
}
