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

// consoleClient reads the pages of a running semel console.
type consoleClient struct {
	http.Client

	base, address string // without and with the token
	stop          func() (code int)
}

// openConsole starts semel console.
func openConsole(t *testing.T, db string) *consoleClient {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- command.Main(ctx, []string{"console", "--db", db}, nil, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	check.Require(t, err)
	c := &consoleClient{Client: http.Client{Jar: check.Must(cookiejar.New(nil))(t)}}
	c.address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/login\?token=\S{26}`).FindString(line)
	c.base, _, _ = strings.Cut(c.address, "login")
	c.stop = func() int {
		c.CloseIdleConnections()
		cancel()
		return <-ended
	}
	return c
}

func (c *consoleClient) read(t *testing.T, url string) (int, string) {
	t.Helper()
	req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	res := check.Must(c.Do(req))(t)
	defer res.Body.Close()
	return res.StatusCode, string(check.Must(io.ReadAll(res.Body))(t))
}

// TestConsole: the printed address, and nothing else, opens the pages, which change
// nothing without --write.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	id := s.makeInDoubt(t, callOf("k"))
	c := openConsole(t, s.db)
	for _, path := range []string{"", "records", "login", "login?token=", "login?token=AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if code, text := c.read(t, c.base+path); code != http.StatusUnauthorized || strings.Contains(text, id) {
			t.Errorf("without the token, /%s has status %d:\n%s", path, code, text)
		}
	}
	code, _ := c.read(t, c.address)
	check.Equal(t, code, http.StatusOK, "the address: status")
	cookies := c.Jar.Cookies(check.Must(url.Parse(c.base))(t))
	check.Equal(t, len(cookies), 1, "cookies")
	code, text := c.read(t, c.base+"record?id="+id)
	if code != http.StatusOK || !strings.Contains(text, "InDoubt") || strings.Contains(text, "What happened?") ||
		!strings.Contains(text, "This process does not have the operation") {
		t.Errorf("the page of the record has status %d:\n%s", code, text)
	}
	if code, text = c.read(t, c.base); code != http.StatusOK || !strings.Contains(text, "The sizes of batches are not known here") {
		t.Errorf("the overview has status %d:\n%s", code, text)
	}
	check.Equal(t, c.stop(), exit.OK, "the exit code")
}

// TestConsoleShowsPartitions: the page of retention has the partitions of PostgreSQL.
func TestConsoleShowsPartitions(t *testing.T) {
	t.Parallel()
	s, full, held := newDivided(t)
	c := openConsole(t, s.db)
	c.read(t, c.address)
	if code, text := c.read(t, c.base+"storage"); code != http.StatusOK || !strings.Contains(text, full) || !strings.Contains(text, held) {
		t.Errorf("the page of retention has status %d and not %s and %s:\n%s", code, full, held, text)
	}
	check.Equal(t, c.stop(), exit.OK, "the exit code")
}

// TestConsoleOnThisMachineOnly: the command has no passwords and no TLS.
func TestConsoleOnThisMachineOnly(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	for _, addr := range []string{":8080", "0.0.0.0:0", "192.0.2.1:80", "example.com:80", "8080"} {
		run(t, "console", "--db", s.db, "--addr", addr).want(t, exit.Usage, "--addr")
	}
}
