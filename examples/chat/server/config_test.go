package server_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/chat/server"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBadStart starts the program with invalid flags: it writes one line that names
// the problem, and exits with code 2.
func TestBadStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	if err := os.WriteFile(filepath.Join(dir, "text.db"), []byte(strings.Repeat("no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	db := "sqlite:" + filepath.Join(dir, "chat.db")
	tests := map[string]struct {
		args  []string
		env   map[string]string
		names string
	}{
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
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience) // in case it serves
			defer cancel()
			var stdout, stderr bytes.Buffer
			code := server.Main(ctx, test.args, func(name string) string { return test.env[name] }, &stdout, &stderr)
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
	code := server.Main(t.Context(), []string{"-h"}, os.Getenv, &stdout, &stderr)
	for _, flag := range []string{"-addr", "-db", "-mode", "-lease", "-wait", "-records", "-amqp", "-amqp-queue", "-bus", "-retention", "-serve-only", "-may-lose", "-sweep", "CHAT_ADDR"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("the usage does not tell of %s:\n%s", flag, stdout.String())
		}
	}
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}
