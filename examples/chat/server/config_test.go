package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/internal/check"
)

// TestBadStart starts the program with invalid flags: it writes one line that names
// the problem, and exits with code 2.
func TestBadStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	check.Require(t, os.WriteFile(filepath.Join(dir, "text.db"), []byte(strings.Repeat("no database ", 500)), 0o600))
	db := "sqlite:" + filepath.Join(dir, "chat.db")
	type badStart struct {
		args  []string
		env   map[string]string
		names string
	}
	tests := map[string]badStart{
		"unknown flag":        {args: []string{"-colour", "red"}, names: "-colour"},
		"argument":            {args: []string{"serve"}, names: "serve"},
		"doubts of something": {args: []string{"doubts", "all"}, names: "doubts"},
		"resolve nothing":     {args: []string{"resolve"}, names: "resolve"},
		"resolve no id":       {args: []string{"resolve", "12", "pending", "why"}, names: "12"},
		"failed of something": {args: []string{"failed", "all"}, names: "failed"},
		"redrive nothing":     {args: []string{"redrive"}, names: "redrive"},
		"redrive no id":       {args: []string{"redrive", "12", "why"}, names: "12"},
		"resolve to nothing": {
			args: []string{"resolve", "00112233445566778899aabbccddeeff", "gone", "why"}, names: "gone",
		},
		"mode":                  {args: []string{"-mode", "fast"}, names: "-mode"},
		"lease no duration":     {args: []string{"-lease", "2"}, names: "-lease"},
		"lease zero":            {args: []string{"-lease", "0"}, names: "-lease"},
		"argon2":                {args: []string{"-argon2", "m=1"}, names: "-argon2"},
		"sign-ups negative":     {args: []string{"-sign-ups", "-1"}, names: "-sign-ups"},
		"log-ins negative":      {args: []string{"-log-ins", "-1"}, names: "-log-ins"},
		"wait negative":         {args: []string{"-wait", "-1s"}, names: "-wait"},
		"address":               {args: []string{"-addr", "8080"}, names: "-addr"},
		"address taken":         {args: []string{"-db", db, "-addr", taken.Addr().String()}, names: taken.Addr().String()},
		"other database":        {args: []string{"-db", "oracle:x"}, names: "-db"},
		"postgres malformed":    {args: []string{"-db", "postgres://u:secret@h:x/db"}, names: "-db"},
		"postgres not there":    {args: []string{"-db", "postgres://u:secret@127.0.0.1:1/db?connect_timeout=1"}, names: "127.0.0.1:1"},
		"records not there":     {args: []string{"-db", db, "-records", "postgres://u:secret@localhost:1/db"}, names: "localhost:1"},
		"database without name": {args: []string{"-db", "sqlite:"}, names: "-db"},
		"records elsewhere":     {args: []string{"-db", db, "-records", "x.db"}, names: "-records"},
		"records in the same":   {args: []string{"-db", db, "-records", db}, names: "-records"},
		"retention zero":        {args: []string{"-retention", "0"}, names: "-retention"},
		"sweep zero":            {args: []string{"-sweep", "0s"}, names: "-sweep"},
		"broker no address":     {args: []string{"-amqp", "http://u:secret@h"}, names: "-amqp"},
		"broker malformed":      {args: []string{"-amqp", "amqp://u:secret@h:x/"}, names: "-amqp"},
		"bus no address":        {args: []string{"-bus", "http://u:secret@h"}, names: "-bus"},
		"bus malformed":         {args: []string{"-bus", "amqp://u:secret@h:x/"}, names: "-bus"},
		"bus name":              {args: []string{"-bus-name", "two words"}, names: "-bus-name"},
		"bus name reserved":     {args: []string{"-bus-name", "amq.fanout"}, names: "-bus-name"},
		"proxy no network":      {args: []string{"-trusted-proxies", "10.0.0.1"}, names: "-trusted-proxies"},
		"session age negative":  {args: []string{"-session-age", "-1s"}, names: "-session-age"},
		"import queue empty":    {args: []string{"-amqp", "amqp://h", "-amqp-queue", ""}, names: "-amqp-queue"},
		"import queue too long": {args: []string{"-amqp", "amqp://h", "-amqp-queue", strings.Repeat("q", 201)}, names: "-amqp-queue"},
		"retention shorter than the broker's redelivery": {
			args: []string{"-db", db, "-amqp", "amqp://h", "-retention", "168h"}, names: "Redelivery",
		},
		"mode by environment":  {env: map[string]string{"CHAT_MODE": "fast"}, names: "mode"},
		"lease by environment": {env: map[string]string{"CHAT_LEASE": "soon"}, names: "CHAT_LEASE"},
		"no directory":         {args: []string{"-db", "sqlite:" + filepath.Join(dir, "none", "chat.db")}, names: "none"},
		"a directory":          {args: []string{"-db", "sqlite:" + dir}, names: dir},
		"no database":          {args: []string{"-db", "sqlite:" + filepath.Join(dir, "text.db")}, names: "text.db"},
		"records in no directory": {
			args: []string{"-db", db, "-records", "sqlite:" + filepath.Join(dir, "none", "r.db")}, names: "none",
		},
	}
	for _, url := range []string{"", "localhost:80", "ftp://chat@localhost", "http://", "http://x?y=z", "http://x/#y", "http://[::1"} {
		tests["payments "+url] = badStart{args: []string{"-payments", url}, names: "for flag -payments: want http://merchant@host:port"}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // in case it serves
			defer cancel()
			var stdout, stderr bytes.Buffer
			code := Main(ctx, test.args, func(name string) string { return test.env[name] }, &stdout, &stderr)
			text := stderr.String()
			if code != 2 || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "chat: ") || !strings.Contains(text, test.names) {
				t.Errorf("exit %d, stderr %q; want exit 2 and one line that names %q", code, text, test.names)
			}
			if strings.Contains(text, "secret") {
				t.Errorf("stderr %q shows a password", text)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout %q, want nothing", stdout.String())
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), []string{"-h"}, os.Getenv, &stdout, &stderr)
	for _, flag := range []string{"-addr", "-db", "-mode", "-lease", "-wait", "-records", "-amqp", "-amqp-queue", "-bus", "-retention", "-serve-only", "-may-lose", "-sweep", "CHAT_ADDR"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("the usage does not tell of %s:\n%s", flag, stdout.String())
		}
	}
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}

// TestFlagsBeatTheEnvironment is in the package because it reads the config.
func TestFlagsBeatTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CHAT_DB": "sqlite:/var/env.db", "CHAT_MODE": "leased", "CHAT_LEASE": "7s", "CHAT_SERVE_ONLY": "true", "CHAT_SIGN_UPS": "3",
		"CHAT_ARGON2": "m=64,t=1,p=1", "CHAT_TRUSTED_PROXIES": "10.0.0.0/8, ::1/128",
	}
	absolute := func(path string) string { return check.Must(filepath.Abs(path))(t) }
	defaults := config{
		addr: "127.0.0.1:8080", db: absolute("chat.db"), records: absolute("chat.db"), mode: modeInline, lease: 2 * time.Second,
		amqpQueue: "chat.import", bus: busAuto, retention: retention, sweep: time.Minute, argon2: accounts.DefaultCost(), signUps: 30, logIns: 10, sessionAge: 90 * 24 * time.Hour,
	}
	with := func(change func(c *config)) config {
		c := defaults
		change(&c)
		return c
	}
	for _, test := range []struct {
		args []string
		env  map[string]string
		want config
	}{
		{want: defaults},
		{env: env, want: with(func(c *config) {
			c.db, c.records, c.mode, c.lease, c.serveOnly, c.signUps = absolute("/var/env.db"), absolute("/var/env.db"), modeLeased, 7*time.Second, true, 3
			c.argon2 = accounts.Cost{Memory: 64, Time: 1, Threads: 1}
			c.proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
		})},
		{
			args: []string{"-db", "sqlite:chat.db", "-mode", "inline", "-lease", "1s", "-serve-only=false", "-sign-ups", "0", "-argon2", "m=128,t=2,p=1", "-trusted-proxies", ""},
			env:  env,
			want: with(func(c *config) {
				c.lease, c.signUps, c.argon2 = time.Second, 0, accounts.Cost{Memory: 128, Time: 2, Threads: 1}
			}),
		},
		{args: []string{"-records", "sqlite:b.db"}, want: with(func(c *config) { c.records, c.mode = absolute("b.db"), modeApart })},
	} {
		got, err := parseConfig(test.args, func(name string) string { return test.env[name] })
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(config{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("parseConfig(%q) = %v, difference (-want +got):\n%s", test.args, err, diff)
		}
	}
}

// TestAddressBehindProxies: only trusted proxies may name the client, and a client cannot
// invent an address before theirs.
func TestAddressBehindProxies(t *testing.T) {
	t.Parallel()
	var c config
	check.Require(t, c.setProxies("10.0.0.0/8,::1/128"))
	for _, test := range []struct {
		from      string
		forwarded []string
		want      string
	}{
		{"203.0.113.9:1", nil, "203.0.113.9"},
		{"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"}, // not a proxy
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"}, // the first is invented
		{"10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1,10.2.3.4"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, nonsense, 10.2.3.4"}, "10.2.3.4"},
		{"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"[::1]:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"[::1]:1", []string{"[2001:db8:1:2:3::4]:4711"}, "2001:db8:1:2::/64"},
		{"[::ffff:10.0.0.1]:1", []string{"2001:db8:1:2:3::4%eth0"}, "2001:db8:1:2::/64"},
	} {
		r := &http.Request{RemoteAddr: test.from, Header: http.Header{"X-Forwarded-For": test.forwarded}}
		behind, direct := &c, new(config)
		check.Equal(t, behind.addressOf(r), test.want, "from %s, forwarded for %q", test.from, test.forwarded)
		check.Equal(t, direct.addressOf(r), direct.addressOf(&http.Request{RemoteAddr: test.from}), "from %s without trusted proxies", test.from)
	}
}
