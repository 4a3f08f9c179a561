package realtest_test

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestDurableServerWaitsForTheDisk, in files of the usual size, with settings and an
// environment of the caller's, until it is closed. A standby has its rows, and waits for the
// disk, too.
func TestDurableServerWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	realtest.Postgres(t) // skips where there is none
	primary := check.Must(realtest.StartDurable(t.Context(), realtest.DurableOptions{
		Settings: []string{"max_connections=17", "wal_keep_size=64MB"}, Env: []string{"SEMEL_SAID=yes"},
	}))(t)
	t.Cleanup(func() { primary.Close() })
	wantSettings(t, primary, map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_segment_size": "16MB", "max_connections": "17",
	})
	env, err := os.ReadFile("/proc/" + strconv.Itoa(primary.PID()) + "/environ")
	if err == nil && !strings.Contains(string(env), "SEMEL_SAID=yes") {
		t.Error("the server has not got the environment")
	}
	standby := check.Must(realtest.StartDurableStandby(t.Context(), primary, "s1", realtest.DurableOptions{Settings: []string{"max_connections=300"}}))(t)
	t.Cleanup(func() { standby.Close() })
	wantSettings(t, standby, map[string]string{"fsync": "on", "in_hot_standby": "on", "max_connections": "300"})
	conn := connect(t, primary.URL())
	realtest.Poll(t, "the standby follows", func() bool {
		var name string
		err := conn.QueryRow(t.Context(), `select application_name from pg_stat_replication where state = 'streaming'`).Scan(&name)
		return err == nil && name == "s1"
	})
	if _, err := realtest.StartDurableStandby(t.Context(), standby, "s2", realtest.DurableOptions{}); err == nil {
		t.Error("StartDurableStandby of a standby = nil, want an error")
	}
	url := primary.URL()
	check.NoError(t, primary.Close())
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the server answers after Close")
	}
}

func wantSettings(t *testing.T, d *realtest.Durable, settings map[string]string) {
	t.Helper()
	for name, want := range settings {
		check.Equal(t, show(t, d.URL(), name), want, "%s", name)
	}
}

// TestDurableMariaDBWaitsForTheDisk until it is closed.
func TestDurableMariaDBWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	realtest.MariaDB(t) // skips where there is none
	d := check.Must(realtest.StartDurableMariaDB(t.Context(), "innodb_flush_log_at_trx_commit=1", "max_connections=77"))(t)
	addr := strings.TrimSuffix(strings.TrimPrefix(d.URL(), "mysql://root@"), "/")
	db := openMySQL(t, "root@tcp("+addr+")/")
	for name, want := range map[string]string{"innodb_flush_log_at_trx_commit": "1", "max_connections": "77"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL."+name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	check.NoError(t, d.Close())
	check.Fails(t, db.PingContext(t.Context()), "the server answers after Close")
}

// TestDurableRedisWaitsForTheDisk until it is closed.
func TestDurableRedisWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	realtest.Redis(t) // skips where there is none
	d := check.Must(realtest.StartDurableRedis(t.Context(), "appendonly yes", "appendfsync always"))(t)
	c := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(d.URL(), "redis://")})
	t.Cleanup(func() { c.Close() })
	for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always"} {
		if got := c.ConfigGet(t.Context(), name); got.Val()[name] != want {
			t.Errorf("%s is %q, %v, want %q", name, got.Val()[name], got.Err(), want)
		}
	}
	check.NoError(t, d.Close())
	check.Fails(t, c.Ping(t.Context()).Err(), "the server answers after Close")
}

// TestDurableEtcdHasALeader, and its members do not run without syncing to the disk.
func TestDurableEtcdHasALeader(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	realtest.Etcd(t) // skips where there is none
	members, err := realtest.StartDurableEtcd(t.Context(), 1)
	check.Require(t, err)
	t.Cleanup(func() { members[0].Close() })
	line, err := os.ReadFile("/proc/" + strconv.Itoa(members[0].PID()) + "/cmdline")
	if err == nil && strings.Contains(string(line), "unsafe-no-fsync") {
		t.Errorf("the member was started by %q", line)
	}
	client, err := realtest.NewEtcdClient(members[0].URL())
	check.Require(t, err)
	t.Cleanup(func() { client.Close() })
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Error(err)
	}
}

// A commit waits while the disk is held, and ends when it is released.
func TestHeldDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	disk := realtest.NewDisk(t)
	db := check.Must(sql.Open("mysql", realtest.OwnMariaDBOn(t, disk).Database(t)))(t)
	defer db.Close()
	check.Must(db.ExecContext(t.Context(), `CREATE TABLE held (n INT PRIMARY KEY) ENGINE=InnoDB`))(t)
	release := disk.Hold()
	done := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), `INSERT INTO held VALUES (1)`)
		done <- err
	}()
	waits := func() bool {
		var n int
		err := db.QueryRowContext(t.Context(),
			`SELECT count(*) FROM information_schema.processlist WHERE state = 'Commit' AND info LIKE 'INSERT INTO held%'`).Scan(&n)
		return err == nil && n == 1
	}
	check.NoError(t, realtest.Retry(t.Context(), waits), "the insert does not wait for the disk")
	select {
	case err := <-done:
		t.Errorf("Exec = %v while the disk is held, want no return", err)
	default:
	}
	release()
	check.NoError(t, <-done, "Exec")
}
