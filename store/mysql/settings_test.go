package mysql_test

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"maps"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
)

// The settings of a running server decide what the records survive, and whether the
// store works with it.
func TestSettingsOfServer(t *testing.T) {
	t.Parallel()
	db := connect(t, migrated(t, realtest.OwnMariaDB(t)))
	s := newStore(t, db)
	for _, row := range []struct {
		set, reset string
		survives   store.Failure
		because    string // part of the reason or of the error
		linear     bool
	}{
		{`SET GLOBAL innodb_flush_log_at_trx_commit = 2`, `SET GLOBAL innodb_flush_log_at_trx_commit = 1`, store.ProcessEnd, "innodb_flush_log_at_trx_commit is 2", true},
		{`SET GLOBAL innodb_flush_log_at_trx_commit = 0`, `SET GLOBAL innodb_flush_log_at_trx_commit = 1`, store.NoFailure, "innodb_flush_log_at_trx_commit is 0", true},
		{`SET GLOBAL innodb_flush_log_at_trx_commit = 3`, `SET GLOBAL innodb_flush_log_at_trx_commit = 1`, store.PowerLoss, "", true},
		{`SET GLOBAL sync_binlog = 0`, `SET GLOBAL sync_binlog = 1`, store.PowerLoss, "", true}, // there is no binary log
		{`SET GLOBAL read_only = ON`, `SET GLOBAL read_only = OFF`, store.PowerLoss, "", false},
	} {
		mustExec(t, db, row.set)
		caps, err := s.Capabilities(t.Context())
		if err != nil || caps.Survives != row.survives || caps.Linearizable != row.linear ||
			!strings.Contains(caps.SurvivesBecause, row.because) || (row.because == "") != (caps.SurvivesBecause == "") {
			t.Errorf("%s: Capabilities = %+v, %v, want %v because of %q, linearizable %v", row.set, caps, err, row.survives, row.because, row.linear)
		}
		mustExec(t, db, row.reset)
	}
	mustExec(t, db, `SET GLOBAL max_allowed_packet = 4194304`)
	small := connect(t, databaseOf(t, db))
	if _, err := newStore(t, small).Capabilities(t.Context()); err == nil || !strings.Contains(err.Error(), "max_allowed_packet is 4194304") {
		t.Errorf("Capabilities with 4 MiB = %v, want an error that names max_allowed_packet", err)
	}
}

// databaseOf returns the data source name of db.
func databaseOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	var name, port string
	check.Require(t, db.QueryRowContext(t.Context(), `SELECT database(), @@port`).Scan(&name, &port))
	return "root@tcp(127.0.0.1:" + port + ")/" + name
}

// Settings that need another configuration of the server, and what they mean.
func TestSettings(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"version": "10.11.19-MariaDB", "max_allowed_packet": "16777216", "character_set_client": "utf8mb4", "sql_mode": "STRICT_TRANS_TABLES",
		"innodb_rollback_on_timeout": "OFF", "log_bin": "ON", "binlog_format": "MIXED", "sync_binlog": "1",
		"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON", "innodb_flush_method": "O_DIRECT",
	}
	for _, row := range []struct {
		name, value string
		survives    store.Failure
		refused     bool
	}{
		{"version", "10.5.29-MariaDB", store.PowerLoss, true},
		{"version", "8.4.6", store.PowerLoss, false},
		{"version", "5.7.44", store.PowerLoss, true},
		{"character_set_client", "gbk", store.PowerLoss, true},
		{"character_set_client", "latin1", store.PowerLoss, false},
		{"sql_mode", "ANSI,ORACLE", store.PowerLoss, true},
		{"sql_mode", "EMPTY_STRING_IS_NULL", store.PowerLoss, true},
		{"sql_mode", "", store.PowerLoss, false},
		{"innodb_rollback_on_timeout", "ON", store.PowerLoss, true},
		{"binlog_format", "STATEMENT", store.PowerLoss, true},
		{"sync_binlog", "0", store.ProcessEnd, false},
		{"innodb_doublewrite", "OFF", store.ProcessEnd, false},
		{"innodb_flush_method", "nosync", store.ProcessEnd, false},
	} {
		v := maps.Clone(good)
		v[row.name] = row.value
		survives, because, err := mysql.CheckSettings(v)
		if (err != nil) != row.refused || err != nil && !strings.Contains(err.Error(), row.name) {
			t.Errorf("%s = %s: %v, want an error: %v", row.name, row.value, err, row.refused)
		}
		if survives != row.survives || (because != "") != (survives < store.PowerLoss) || because != "" && !strings.Contains(because, row.name) {
			t.Errorf("%s = %s survives %v because of %q, want %v", row.name, row.value, survives, because, row.survives)
		}
	}
}

// Without its tables, each call's error says what to do. A table of another engine is
// refused.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	db := connect(t, realtest.MariaDB(t).Database(t))
	s := newStore(t, db)
	ctx, c := t.Context(), create("key", store.InProgress, 1)
	errs := map[string]error{}
	_, errs["Swap"] = s.Swap(ctx, []store.Change{c})
	_, errs["Get"] = s.Get(ctx, []store.ID{c.To.ID})
	_, errs["Scan"] = s.Scan(ctx, store.Query{})
	_, errs["Purge"] = s.Purge(ctx, 1)
	_, errs["Counts"] = s.Counts(ctx)
	_, errs["Dequeue"] = s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1})
	_, errs["Capabilities"] = s.Capabilities(ctx)
	_, errs["SwapNoted"] = s.SwapNoted(ctx, c, store.Note{})
	_, errs["Notes"] = s.Notes(ctx, c.To.ID)
	_, errs["Atomic"] = s.Atomic(ctx, c.To.ID, true, nil)
	_, _, errs["AtomicBatch"] = s.AtomicBatch(ctx, c, true, nil)
	for call, err := range errs {
		check.ErrorIs(t, err, mysql.ErrNoSchema, "%s without tables", call)
	}
	check.Require(t, migrate.Up(ctx, db, migrate.Options{}))
	mustApply(t, s, c)
	mustExec(t, db, `ALTER TABLE semel_notes ENGINE = Aria`)
	if _, err := s.Capabilities(ctx); err == nil || !strings.Contains(err.Error(), "engine of table semel_notes is Aria") {
		t.Errorf("Capabilities with a table of another engine = %v, want an error that names it", err)
	}
}

// Records are kept byte for byte with every sql_mode and character set of the
// application's connections, and with other names of the tables.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	name := database(t)
	for i, params := range []string{
		`?sql_mode=''`, `?sql_mode='ANSI'`, `?sql_mode='NO_BACKSLASH_ESCAPES'`, `?sql_mode='TRADITIONAL,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE'`,
		`?charset=latin1`, `?time_zone='%2B05:00'&parseTime=true`, `?tx_isolation='SERIALIZABLE'`, `?innodb_lock_wait_timeout=1`, `?interpolateParams=false`,
	} {
		s := newStore(t, connect(t, name+params))
		if _, err := s.Capabilities(t.Context()); err != nil {
			t.Errorf("%s: %v", params, err)
		}
		c := create(string([]byte{0, '\'', '\\', '"', '?', 0xff, byte('a' + i)}), store.Succeeded, 1<<63+uint64(i))
		c.To.Outcome = []byte("\x00'\\\"?;--\n\x1a\xff")
		verdict, err := s.Atomic(t.Context(), c.To.ID, true, nothing(&c))
		if verdict != store.Committed || err != nil {
			t.Errorf("%s: Atomic = %v, %v, want Committed", params, verdict, err)
			continue
		}
		results, err := s.Get(t.Context(), []store.ID{c.To.ID})
		if err != nil || results[0].Record == nil || results[0].Record.Key != c.To.Key || string(results[0].Record.Outcome) != string(c.To.Outcome) ||
			results[0].Token != c.To.Token || results[0].Record.Age > 3600e9 {
			t.Errorf("%s: Get = %+v, %v, want %+v", params, results, err, c.To)
		}
	}
}

// TestIdleTransactionsEnd: the server ends transactions of a process that no longer sends
// statements, in both pools, so that its locks end.
func TestIdleTransactionsEnd(t *testing.T) {
	t.Parallel()
	name := database(t)
	for params, want := range map[string]int{``: 30, `?idle_transaction_timeout=7`: 7, `?idle_transaction_timeout=0`: 0} {
		db := connect(t, name+params)
		for pool, of := range map[string]*sql.DB{"application": db, "own": newStore(t, db).OwnPool()} {
			var seconds int
			check.Require(t, of.QueryRowContext(t.Context(), `SELECT @@SESSION.idle_transaction_timeout`).Scan(&seconds))
			check.Equal(t, seconds, want, "idle_transaction_timeout of the %s pool with %q", pool, params)
		}
	}

	silent := newStore(t, connect(t, name+`?idle_transaction_timeout=1`))
	c := create("locked", store.InProgress, 1)
	mustApply(t, silent, c)
	realtest.Poll(t, "a transaction that has the lock before the server ends it", func() bool {
		tx := check.Must(silent.OwnPool().BeginTx(t.Context(), nil))(t)
		t.Cleanup(func() { _ = tx.Rollback() })
		_, err := tx.ExecContext(t.Context(), `SELECT id FROM semel_records WHERE id = ? FOR UPDATE`, c.To.ID[:])
		if err != nil && !errors.Is(err, driver.ErrInvalidConn) && !errors.Is(err, sqldriver.ErrBadConn) {
			t.Fatal(err)
		}
		return err == nil
	})
	next := c
	next.If, next.To.Token = c.To.Token, store.Token{State: store.Succeeded, Attempt: 1, Owner: 1}
	other := newStore(t, connect(t, name))
	realtest.Poll(t, "the end of the silent transaction", func() bool {
		results, err := other.Swap(t.Context(), []store.Change{next})
		check.Require(t, err)
		return results[0].Applied(next)
	})
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	db := connect(t, realtest.MariaDB(t).Database(t))
	check.Require(t, migrate.Up(t.Context(), db, migrate.Options{Prefix: "app_"}))
	s, err := mysql.New(db, mysql.Options{Prefix: "app_"})
	check.Require(t, err)
	if _, err := s.Capabilities(t.Context()); err != nil {
		t.Error(err)
	}
	c, queued := create("semel_records", store.Succeeded, 1), create("semel_run", store.Pending, 2)
	if verdict, err := s.Atomic(t.Context(), c.To.ID, true, nothing(&c)); verdict != store.Committed {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
	mustApply(t, s, queued)
	records, err := s.Scan(t.Context(), store.Query{State: store.Succeeded})
	if err != nil || len(records) != 1 || records[0].Key != "semel_records" {
		t.Errorf("Scan = %+v, %v, want the record", records, err)
	}
	if claimed, err := s.Dequeue(t.Context(), store.Dequeue{Operation: "test", Limit: 2, Owner: 3}); err != nil || len(claimed) != 1 {
		t.Errorf("Dequeue = %+v, %v, want one record", claimed, err)
	}
	if _, err := mysql.New(db, mysql.Options{Prefix: "a-"}); err == nil || !strings.Contains(err.Error(), "Options.Prefix") {
		t.Errorf("New with the prefix a- = %v, want an error that names the field", err)
	}
}

// Open names the setting that it refuses.
func TestOpenRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"root@tcp(127.0.0.1:1)/d?clientFoundRows=true": "clientFoundRows",
		"root@tcp(127.0.0.1:1)/":                       "DBName",
		"root@other(127.0.0.1:1)/d":                    "network",
		"root@":                                        "DSN",
	} {
		if _, err := mysql.Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q) = %v, want an error that names %s", name, err, want)
		}
	}
	plain := check.Must(sql.Open("mysql", "root@tcp(127.0.0.1:1)/d"))(t)
	defer plain.Close()
	if _, err := mysql.New(plain, mysql.Options{}); err == nil {
		t.Error("New with a database of another driver = nil, want an error")
	}
}
