package ops_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
)

// TestConsole: the printed address, and nothing else, opens the pages, which change
// nothing without --write.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	id := s.makeInDoubt(t, callOf("k"))
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- command.Main(ctx, []string{"console", "--db", s.db}, nil, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	check.Require(t, err)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/login\?token=\S{26}`).FindString(line)
	base, _, _ := strings.Cut(address, "login")
	jar := check.Must(cookiejar.New(nil))(t)
	client := http.Client{Jar: jar}
	get := func(url string) (int, string) {
		t.Helper()
		req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		res := check.Must(client.Do(req))(t)
		defer res.Body.Close()
		return res.StatusCode, string(check.Must(io.ReadAll(res.Body))(t))
	}
	for _, path := range []string{"", "records", "login", "login?token=", "login?token=AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if code, text := get(base + path); code != http.StatusUnauthorized || strings.Contains(text, id) {
			t.Errorf("without the token, /%s has status %d:\n%s", path, code, text)
		}
	}
	code, _ := get(address)
	check.Equal(t, code, http.StatusOK, "the address: status")
	cookies := jar.Cookies(check.Must(url.Parse(base))(t))
	check.Equal(t, len(cookies), 1, "cookies")
	code, text := get(base + "record?id=" + id)
	if code != http.StatusOK || !strings.Contains(text, "InDoubt") || strings.Contains(text, "What happened?") {
		t.Errorf("the page of the record has status %d:\n%s", code, text)
	}
	client.CloseIdleConnections()
	stop()
	check.Equal(t, <-ended, exit.OK, "the exit code")
}

// TestConsoleOnThisMachineOnly: the command has no passwords and no TLS.
func TestConsoleOnThisMachineOnly(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	for _, addr := range []string{":8080", "0.0.0.0:0", "192.0.2.1:80", "example.com:80", "8080"} {
		run(t, "console", "--db", s.db, "--addr", addr).want(t, exit.Usage, "--addr")
	}
}
