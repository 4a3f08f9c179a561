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
	"github.com/semelgo/semel/store"
)

// create creates a record of the operation.
func (s *testDB) create(t *testing.T, operation string, state store.State, due, expire time.Duration) store.ID {
	t.Helper()
	r := store.Record{
		ID: store.NewID(operation, someScope().Bytes(), "1"), Operation: operation, Scope: someScope().Bytes(), Key: "1",
		Token: store.Token{State: state, Attempt: 1, Owner: 2}, Due: due, Expire: expire,
	}
	answers, err := s.store.Swap(t.Context(), []store.Change{{To: r}})
	check.Require(t, err)
	check.Require(t, answers[0].Err)
	return r.ID
}

// stateOf returns the state of a record.
func (s *testDB) stateOf(t *testing.T, id store.ID) store.State {
	t.Helper()
	return check.Must(s.store.Get(t.Context(), []store.ID{id}))(t)[0].Token.State
}

// TestSweep: the sweeper settles the records of dead processes as the given policies say,
// leaves those of other operations, purges, and serves the metrics of the database.
func TestSweep(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		held := s.create(t, "charge", store.InProgress, -time.Second, 0)
		queued := s.create(t, "mail", store.InProgress, -time.Second, 0)
		unknown := s.create(t, "other", store.InProgress, -time.Second, 0)
		old := s.create(t, "old", store.Succeeded, 0, -time.Second)
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
		stop()
		check.Equal(t, <-ended, exit.OK, "exit code")
		check.Equal(t, s.stateOf(t, held), store.InDoubt, "state under hold")
		check.Equal(t, s.stateOf(t, queued), store.Pending, "state under keyed")
		check.Equal(t, s.stateOf(t, unknown), store.InProgress, "state of an operation that was not named")
		check.Equal(t, s.stateOf(t, old), store.Absent, "state past the retention")
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
