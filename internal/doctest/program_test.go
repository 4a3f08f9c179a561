package doctest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/repository"
	"github.com/semelgo/semel/semelhttp"
)

const quickstart = "docs/quickstart.md"

// TestProgramOfReadme builds the complete program of the README as a package of this module,
// runs it, and sends the requests that the README describes.
func TestProgramOfReadme(t *testing.T) {
	t.Parallel()
	base := buildServer(t, codeOn(t, english, "package main")).start(t, t.TempDir())
	const book, lamp = `{"item":"book"}`, `{"item":"lamp"}`
	first := post(t, base+"/orders", "the-key", book)
	check.Equal(t, first.status, http.StatusCreated, "the first request")
	check.Equal(t, first.replayed, "", "the first request: replayed")
	second := post(t, base+"/orders", "the-key", book)
	check.Equal(t, second, answer{http.StatusCreated, "true", first.body}, "the second request")
	other := post(t, base+"/orders", "another-key", book)
	if other.status != http.StatusCreated || other.replayed != "" || other.body == first.body {
		t.Errorf("another key: %+v, want 201 and another order than %q", other, first.body)
	}
	check.Equal(t, post(t, base+"/orders", "the-key", lamp).status, http.StatusUnprocessableEntity, "the key with another body")
	check.Equal(t, post(t, base+"/orders", "", book).status, http.StatusBadRequest, "no key")
}

// TestProgramOfQuickstartServes adds the page's function to the program as the page says.
func TestProgramOfQuickstartServes(t *testing.T) {
	t.Parallel()
	const newEngine = "engine := must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{}))\n"
	base := buildServer(t, strings.NewReplacer(
		newEngine, newEngine+"\tserve(engine)\n",
		"import (\n", "import (\n\t\"net/http\"\n\t\"github.com/semelgo/semel/semelhttp\"\n",
	).Replace(codeOn(t, quickstart, "package main"))+codeOn(t, quickstart, "func serve(")).start(t, t.TempDir())
	for _, replayed := range []string{"", "true"} {
		check.Equal(t, post(t, base+"/orders", "key-9", "item=desk"), answer{http.StatusOK, replayed, "order 1\n"}, "an order")
	}
}

// TestProgramOfPayment runs the program of the page as the page does: a replay, a crash after
// the charge, and the retry, which finds the charge of the first attempt.
//
//nolint:tparallel // the second server continues where the first one crashed
func TestProgramOfPayment(t *testing.T) {
	t.Parallel()
	const page = "docs/recipes/payment.md"
	dir, program := t.TempDir(), buildServer(t, codeOn(t, page, "package main"))
	t.Run("crash", func(t *testing.T) {
		base := program.start(t, dir, "CRASH=1")
		check.Equal(t, post(t, base+"/payments", "o-0", `{"amount":700}`).status, 0, "the process died")
	})
	base := program.start(t, dir)
	realtest.Poll(t, "the lease to expire", func() bool {
		a := post(t, base+"/payments", "o-0", `{"amount":700}`)
		if a.status == http.StatusOK {
			check.Equal(t, a.body, `{"amount":700,"charge":1}`+"\n", "the charge of the first attempt")
		}
		return a.status != http.StatusConflict
	})
	for _, replayed := range []string{"", "true"} {
		a := post(t, base+"/payments", "o-17", `{"amount":700}`)
		check.Equal(t, a.status, http.StatusOK, "a payment")
		check.Equal(t, a.replayed, replayed, "a payment: replayed")
		if !strings.Contains(repository.Read(t, page), "\n"+strings.TrimSpace(a.body)+"\n") {
			t.Errorf("%s does not show the response %q", page, a.body)
		}
		a = post(t, base+"/payments", "o-19", `{"amount":200000}`)
		check.Equal(t, a.status, http.StatusUnprocessableEntity, "a declined payment: %s", a.body)
		check.Equal(t, a.replayed, replayed, "a declined payment: replayed")
	}
}

// build compiles source as a package of this module. The package is not in the file system;
// an overlay gives the path of its file.
func build(t *testing.T, source string) (binary string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	write(t, file, []byte(source))
	overlay := check.Must(json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(repository.Root(t), "internal", "doctest", "program", "main.go"): file,
	}}))(t)
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	binary = filepath.Join(dir, "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
		"-ldflags=-s -w", "-o", binary, "./internal/doctest/program")
	cmd.Dir = repository.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the program does not build: %v\n%s", err, out)
	}
	return binary
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	check.Require(t, os.WriteFile(path, text, 0o600))
}

// pageAddr finds the address at which a program of a page listens.
var pageAddr = regexp.MustCompile(`127\.0\.0\.1:808\d`)

// pageServer is a program of a page that serves at a free port.
type pageServer struct{ binary, addr string }

// buildServer builds a program that listens at one of the ports of the pages.
func buildServer(t *testing.T, source string) pageServer {
	t.Helper()
	addr := realtest.FreeAddr(t)
	return pageServer{build(t, pageAddr.ReplaceAllLiteralString(source, addr)), addr}
}

// start runs the program in a directory until the test ends, with more variables in its
// environment, and returns its URL when it accepts connections.
func (p pageServer) start(t *testing.T, dir string, environment ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.binary)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	check.Require(t, cmd.Start())
	var waited error // read once ended is closed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		waited = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-ended
		if t.Failed() {
			t.Logf("the program's output:\n%s", &output)
		}
	})
	realtest.Poll(t, "the program to listen", func() bool {
		select {
		case <-ended:
			t.Fatalf("the program ended: %v\n%s", waited, &output)
		default:
		}
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + p.addr
}

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// answer is the response to a request. Its status is 0 if there was none.
type answer struct {
	status         int
	replayed, body string
}

func post(t *testing.T, url, key, body string) answer {
	t.Helper()
	req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body)))(t)
	req.Header.Set("X-User", "ann")
	if !strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		req.Header.Set(semelhttp.HeaderKey, key)
	}
	res, err := testClient.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer res.Body.Close()
	text := check.Must(io.ReadAll(res.Body))(t)
	return answer{res.StatusCode, res.Header.Get(semelhttp.HeaderReplayed), string(text)}
}
