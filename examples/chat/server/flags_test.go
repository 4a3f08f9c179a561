package server

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/accounts"
)

// TestFlagsBeatTheEnvironment is in the package because it reads the config.
func TestFlagsBeatTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CHAT_ADDR": "127.0.0.1:1", "CHAT_METRICS": "127.0.0.1:5", "CHAT_DB": "sqlite:/var/env.db", "CHAT_MODE": "leased", "CHAT_LEASE": "7s", "CHAT_WAIT": "3s",
		"CHAT_AMQP": "amqp://rabbit", "CHAT_AMQP_QUEUE": "in", "CHAT_BUS": "amqp://bus", "CHAT_RETENTION": "500h", "CHAT_SERVE_ONLY": "true", "CHAT_MAY_LOSE": "true", "CHAT_SWEEP": "4s",
		"CHAT_ARGON2": "m=64,t=1,p=1", "CHAT_SIGN_UPS": "3", "CHAT_LOG_INS": "4",
		"CHAT_BUS_NAME": "one", "CHAT_TRUSTED_PROXIES": "10.0.0.0/8, ::1/128", "CHAT_SESSION_AGE": "1h",
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
			amqpQueue: "chat.import", bus: busAuto, busName: defaultBusName, retention: retention, sweep: time.Minute, argon2: accounts.DefaultCost(), signUps: 30, logIns: 10, sessionAge: 90 * 24 * time.Hour,
		}},
		"environment": {env: env, want: config{
			addr: "127.0.0.1:1", metrics: "127.0.0.1:5", db: absolute("/var/env.db"), records: absolute("/var/env.db"), mode: modeLeased,
			lease: 7 * time.Second, wait: 3 * time.Second,
			amqp: "amqp://rabbit", amqpQueue: "in", bus: "amqp://bus", busName: "one", retention: 500 * time.Hour, serveOnly: true, mayLose: true, sweep: 4 * time.Second,
			argon2: accounts.Cost{Memory: 64, Time: 1, Threads: 1}, signUps: 3, logIns: 4,
			proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, sessionAge: time.Hour,
		}},
		"flags": {
			args: []string{
				"-addr", ":2", "-metrics", "", "-db", "sqlite:a.db", "-mode", "inline", "-lease", "1s", "-wait", "0",
				"-amqp", "", "-amqp-queue", "out", "-bus", "local", "-retention", "200h", "-serve-only=false", "-may-lose=false", "-sweep", "5s",
				"-argon2", "m=128,t=2,p=1", "-sign-ups", "0", "-log-ins", "5",
				"-bus-name", "chat-2.x", "-trusted-proxies", "", "-session-age", "0",
			},
			env: env,
			want: config{
				addr: ":2", db: absolute("a.db"), records: absolute("a.db"), mode: modeInline, lease: time.Second,
				amqpQueue: "out", bus: busLocal, busName: "chat-2.x", retention: 200 * time.Hour, sweep: 5 * time.Second,
				argon2: accounts.Cost{Memory: 128, Time: 2, Threads: 1}, logIns: 5,
			},
		},
		"records": {
			args: []string{"-db", "sqlite:a.db", "-records", "sqlite:b.db"},
			want: config{
				addr: "127.0.0.1:8080", db: absolute("a.db"), records: absolute("b.db"), mode: modeApart, lease: 2 * time.Second,
				amqpQueue: "chat.import", bus: busAuto, busName: defaultBusName, retention: retention, sweep: time.Minute, argon2: accounts.DefaultCost(), signUps: 30, logIns: 10, sessionAge: 90 * 24 * time.Hour,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseConfig(test.args, func(name string) string { return test.env[name] })
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(config{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" {
				t.Errorf("parseConfig(%q) = %v, difference (-want +got):\n%s", test.args, err, diff)
			}
		})
	}
}
