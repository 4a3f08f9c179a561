package ops_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// TestSweep: the sweeper settles the records of dead processes as the given policies say,
// leaves those of other operations, purges, and serves the metrics of the database.
func TestSweep(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		expired := store.Record{Token: token(store.InProgress, 1), Key: "1", Due: -time.Second}
		leak := func(operation string) store.ID { expired.Operation = operation; return s.put(t, expired) }
		held, queued, unknown := leak("charge"), leak("mail"), leak("other")
		old := s.put(t, store.Record{Token: token(store.Succeeded, 1), Key: "1", Expire: -time.Second})
		ctx, stop := context.WithCancel(t.Context())
		out, stdout := io.Pipe()
		errs, stderr := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			code := command.Main(ctx, []string{
				"sweep", "--db", s.db, "--metrics", "127.0.0.1:0", "--every", "10ms", "--operation", "charge=hold", "--operation", "mail=keyed",
			}, strings.NewReader(""), stdout, stderr)
			_, _ = stdout.Close(), stderr.Close()
			ended <- code
		}()
		line := check.Must(bufio.NewReader(out).ReadString('\n'))(t)
		url := strings.TrimSpace(strings.TrimPrefix(line, "serving "))
		go func() { _, _ = io.Copy(io.Discard, out) }()
		seen := map[string]bool{}
		for lines := bufio.NewScanner(errs); len(seen) < 2 && lines.Scan(); {
			for _, event := range []string{"event=in_doubt operation=charge", "event=swept operation=mail"} {
				if strings.Contains(lines.Text(), event) {
					seen[event] = true
				}
			}
		}
		go func() { _, _ = io.Copy(io.Discard, errs) }()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp := check.Must(client.Do(check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))(t)))(t)
		text := string(check.Must(io.ReadAll(resp.Body))(t))
		check.NoError(t, resp.Body.Close())
		for _, want := range []string{
			`semel_operation="charge",semel_state="indoubt"} 1`, `semel_operation="mail",semel_state="pending"} 1`,
			`semel_operation="other",semel_state="inprogress"} 1`, `semel_event="swept",semel_operation="mail"} 1`, "go_goroutines",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the metrics lack %s:\n%s", want, text)
			}
		}
		realtest.Poll(t, "the purge", func() bool { return s.stateOf(t, old) == store.Absent })
		stop()
		check.Equal(t, <-ended, exit.OK, "exit code")
		check.Equal(t, s.stateOf(t, held), store.InDoubt, "state under hold")
		check.Equal(t, s.stateOf(t, queued), store.Pending, "state under keyed")
		check.Equal(t, s.stateOf(t, unknown), store.InProgress, "state of an operation that was not named")
	})
}

// TestSweepFlags: wrong flags are named before anything is opened.
func TestSweepFlags(t *testing.T) {
	t.Parallel()
	for flag, value := range map[string]string{"--operation": "charge=heal", "--every": "0s", "--metrics": "9464"} {
		run(t, "sweep", "--db", "sqlite:missing", flag, value).want(t, exit.Usage, flag)
	}
	run(t, "sweep", "--db", "sqlite:missing", "--operation", "a=hold", "--operation", "a=keyed").want(t, exit.Usage, "twice")
}
