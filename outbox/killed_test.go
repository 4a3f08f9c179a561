package outbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store/sqlite"
)

// childVariable names the file of the database of a child process.
const childVariable = "OUTBOX_CHILD"

// heldVariable tells a child process to wait for a line after each publication.
const heldVariable = "OUTBOX_HELD"

// runChild runs a relay until the process is killed. Its broker writes to the standard output.
func runChild(file string) {
	db := must(sqlite.Open(file))
	e := must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{}))
	held, proceed := os.Getenv(heldVariable) != "", make(chan struct{})
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			proceed <- struct{}{}
		}
	}()
	r := must(outbox.NewRelay(e, outbox.PublisherFunc(func(_ context.Context, m outbox.Message) error {
		_, err := fmt.Println(string(m.Payload))
		if held {
			<-proceed
		}
		return err
	}), outbox.Options{Lease: 100 * time.Millisecond, Poll: 10 * time.Millisecond, Batch: 5}))
	_ = r.Run(context.Background()) // it is killed
}

// must is for a process that runs no test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// file returns the path of a database of SQLite.
func (d *database[Tx]) file() (path string) {
	d.t.Helper()
	d.Scan(&path, `SELECT file FROM pragma_database_list WHERE name = 'main'`)
	return filepath.Clean(path)
}

// TestKilledRelays: relays are killed one after the other, each after some messages: every
// other one between the last publication and its removal, the others at any point. Every event
// is published, in order.
func TestKilledRelays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	d := onSQLite(t)
	e := newEngine(t, d.Store, semel.Options{})
	want := make(map[string][]string)
	for _, name := range []string{"a", "b", "c"} {
		events, list := numbered(name, 40)
		d.write(e, events...)
		want[name] = list
	}
	first := make(map[string][]string)
	seen, repeated := make(map[string]bool), 0
	for round := 0; len(seen) < 120; round++ {
		cmd := exec.CommandContext(t.Context(), check.Must(os.Executable())(t))
		cmd.Env = append(os.Environ(), childVariable+"="+d.file())
		held := round%2 == 0
		if held {
			cmd.Env = append(cmd.Env, heldVariable+"=1")
		}
		in, out := check.Must(cmd.StdinPipe())(t), check.Must(cmd.StdoutPipe())(t)
		check.Require(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; (n < 1+round%7 || round > 60) && len(seen) < 120; n++ {
			if held && n > 0 {
				check.Must(fmt.Fprintln(in))(t)
			}
			if !lines.Scan() {
				break
			}
			body := lines.Text()
			if seen[body] {
				repeated++
				continue
			}
			seen[body] = true
			name, _, _ := strings.Cut(body, "-")
			first[name] = append(first[name], body)
		}
		check.Require(t, cmd.Process.Kill())
		for lines.Scan() { // what it has published before its end
			if body := lines.Text(); !seen[body] {
				seen[body] = true
				name, _, _ := strings.Cut(body, "-")
				first[name] = append(first[name], body)
			}
		}
		_ = cmd.Wait() // it was killed
	}
	for name, list := range want {
		if !slices.Equal(first[name], list) {
			t.Errorf("%s: the first publications are %v, want %v", name, first[name], list)
		}
	}
	if repeated == 0 {
		t.Error("no event was published twice: no relay was killed between a confirmation and its removal")
	}
}
