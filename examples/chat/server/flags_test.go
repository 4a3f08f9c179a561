package server

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFlagsBeatTheEnvironment is in the package because it reads the config.
func TestFlagsBeatTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CHAT_ADDR": "127.0.0.1:1", "CHAT_DB": "sqlite:/var/env.db", "CHAT_MODE": "leased", "CHAT_LEASE": "7s", "CHAT_WAIT": "3s",
		"CHAT_AMQP": "amqp://rabbit", "CHAT_AMQP_QUEUE": "in", "CHAT_RETENTION": "500h", "CHAT_SERVE_ONLY": "true", "CHAT_MAY_LOSE": "true", "CHAT_SWEEP": "4s",
	}
	absolute := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		args []string
		env  map[string]string
		want config
	}{
		"nothing": {want: config{
			addr: "127.0.0.1:8080", db: absolute("chat.db"), records: absolute("chat.db"), mode: modeInline, lease: 2 * time.Second,
			amqpQueue: "chat.import", retention: retention, sweep: time.Minute,
		}},
		"environment": {env: env, want: config{
			addr: "127.0.0.1:1", db: absolute("/var/env.db"), records: absolute("/var/env.db"), mode: modeLeased,
			lease: 7 * time.Second, wait: 3 * time.Second,
			amqp: "amqp://rabbit", amqpQueue: "in", retention: 500 * time.Hour, serveOnly: true, mayLose: true, sweep: 4 * time.Second,
		}},
		"flags": {
			args: []string{
				"-addr", ":2", "-db", "sqlite:a.db", "-mode", "inline", "-lease", "1s", "-wait", "0",
				"-amqp", "", "-amqp-queue", "out", "-retention", "200h", "-serve-only=false", "-may-lose=false", "-sweep", "5s",
			},
			env: env,
			want: config{
				addr: ":2", db: absolute("a.db"), records: absolute("a.db"), mode: modeInline, lease: time.Second,
				amqpQueue: "out", retention: 200 * time.Hour, sweep: 5 * time.Second,
			},
		},
		"records": {
			args: []string{"-db", "sqlite:a.db", "-records", "sqlite:b.db"},
			want: config{
				addr: "127.0.0.1:8080", db: absolute("a.db"), records: absolute("b.db"), mode: modeApart, lease: 2 * time.Second,
				amqpQueue: "chat.import", retention: retention, sweep: time.Minute,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseConfig(test.args, func(name string) string { return test.env[name] })
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(config{})); err != nil || diff != "" {
				t.Errorf("parseConfig(%q) = %v, difference (-want +got):\n%s", test.args, err, diff)
			}
		})
	}
}
