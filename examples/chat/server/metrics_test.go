package server_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// TestMetrics: the address of -metrics serves the metrics of both engines and of the database,
// and the public address does not.
func TestMetrics(t *testing.T) {
	t.Parallel()
	f := newFiles(t, inline)
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args := append(f.args(time.Second), "-addr", "127.0.0.1:0", "-metrics", "127.0.0.1:0")
		ended <- server.Main(ctx, args, func(string) string { return "" }, in, io.Discard)
		_ = in.Close()
	}()
	lines := bufio.NewReader(out)
	_, public, _ := strings.Cut(check.Must(lines.ReadString('\n'))(t), "serving ")
	public, _, _ = strings.Cut(public, " ")
	_, url, _ := strings.Cut(strings.TrimSpace(check.Must(lines.ReadString('\n'))(t)), "metrics at ")
	c := newClient(t, public)
	for range 2 {
		c.settled(t, signUp("sign up ann", "ann")).want(t, http.StatusCreated, "")
	}
	text := scrape(t, url)
	for _, want := range []string{
		`semel_events_total{db_system_name="sqlite",semel_event="succeeded",semel_operation="sign_up"} 1`,
		`semel_events_total{db_system_name="sqlite",semel_event="replayed",semel_operation="sign_up"} 1`,
		`semel_records{db_system_name="sqlite",semel_operation="sign_up",semel_state="succeeded"} 1`,
		`semel_outbox_parked_aggregates{db_system_name="sqlite"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	if text := scrape(t, public+"/metrics"); strings.Contains(text, "semel_") {
		t.Error("the public address serves the metrics")
	}
	stop()
	check.Equal(t, <-ended, 0, "the server ended with")
}

// scrape returns the body of a response.
func scrape(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp := check.Must(client.Do(check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))(t)))(t)
	defer resp.Body.Close()
	return string(check.Must(io.ReadAll(resp.Body))(t))
}
