package realtest_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

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
