package realtest_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/realtest"
)

// TestDurableServerWaitsForTheDisk, in files of the usual size, with settings and
// an environment of the caller's, until it is closed.
func TestDurableServerWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	realtest.Postgres(t) // skips where there is none
	d, err := realtest.StartDurable(t.Context(), realtest.DurableOptions{
		Settings: []string{"max_connections=7"}, Env: []string{"SEMEL_SAID=yes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
		"wal_segment_size": "16MB", "max_connections": "7",
	} {
		if got := show(t, d.URL(), name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(d.PID()) + "/environ")
	if err == nil && !strings.Contains(string(env), "SEMEL_SAID=yes") {
		t.Error("the server has not got the environment")
	}
	url := d.URL()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the server answers after Close")
	}
}

// TestDurableStandbyFollows: a standby has the primary's rows, and waits for the disk, too.
func TestDurableStandbyFollows(t *testing.T) {
	t.Parallel()
	realtest.Postgres(t) // skips where there is none
	primary, err := realtest.StartDurable(t.Context(), realtest.DurableOptions{Settings: []string{"wal_keep_size=64MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { primary.Close() })
	standby, err := realtest.StartDurableStandby(t.Context(), primary, "s1", realtest.DurableOptions{Settings: []string{"max_connections=300"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standby.Close() })
	for name, want := range map[string]string{"fsync": "on", "in_hot_standby": "on", "max_connections": "300"} {
		if got := show(t, standby.URL(), name); got != want {
			t.Errorf("%s of the standby is %q, want %q", name, got, want)
		}
	}
	conn, err := pgx.Connect(t.Context(), primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	realtest.Poll(t, "the standby follows", func() bool {
		var name string
		err := conn.QueryRow(t.Context(), `select application_name from pg_stat_replication where state = 'streaming'`).Scan(&name)
		return err == nil && name == "s1"
	})
	if _, err := realtest.StartDurableStandby(t.Context(), standby, "s2", realtest.DurableOptions{}); err == nil {
		t.Error("StartDurableStandby of a standby = nil, want an error")
	}
}

// TestDurableMariaDBWaitsForTheDisk until it is closed.
func TestDurableMariaDBWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	realtest.MariaDB(t) // skips where there is none
	d, err := realtest.StartDurableMariaDB(t.Context(), "innodb_flush_log_at_trx_commit=1", "max_connections=77")
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(d.URL(), "mysql://root@"), "/")
	db := openMySQL(t, "root@tcp("+addr+")/")
	for name, want := range map[string]string{"innodb_flush_log_at_trx_commit": "1", "max_connections": "77"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL."+name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("the server answers after Close")
	}
}

// TestDurableRedisWaitsForTheDisk until it is closed.
func TestDurableRedisWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	realtest.Redis(t) // skips where there is none
	d, err := realtest.StartDurableRedis(t.Context(), "appendonly yes", "appendfsync always")
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(d.URL(), "redis://")})
	t.Cleanup(func() { c.Close() })
	for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always"} {
		if got := c.ConfigGet(t.Context(), name); got.Val()[name] != want {
			t.Errorf("%s is %q, %v, want %q", name, got.Val()[name], got.Err(), want)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("the server answers after Close")
	}
}

// TestDurableEtcdHasALeader, and its members do not run without syncing to the disk.
func TestDurableEtcdHasALeader(t *testing.T) {
	t.Parallel()
	realtest.Etcd(t) // skips where there is none
	members, err := realtest.StartDurableEtcd(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { members[0].Close() })
	line, err := os.ReadFile("/proc/" + strconv.Itoa(members[0].PID()) + "/cmdline")
	if err == nil && strings.Contains(string(line), "unsafe-no-fsync") {
		t.Errorf("the member was started by %q", line)
	}
	client, err := realtest.NewEtcdClient(members[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Error(err)
	}
}
