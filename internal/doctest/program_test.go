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
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelhttp"
)

// readmeAddr is the address on which the README's program listens. The test replaces it.
const readmeAddr = "127.0.0.1:8081"

// TestReadmeProgramRuns builds the complete program of the README as a package of this
// module, runs it, and sends the requests that the README describes.
func TestReadmeProgramRuns(t *testing.T) {
	source, addr := program(t)
	base := start(t, build(t, source), addr)

	first, status := post(t, base, "the-key", `{"item":"book"}`)
	if status != http.StatusCreated {
		t.Fatalf("the first request: status %d, want 201; body %s", status, first.body)
	}
	if first.replayed {
		t.Error("the first response is a replay")
	}
	second, status := post(t, base, "the-key", `{"item":"book"}`)
	if status != http.StatusCreated || !second.replayed || second.body != first.body {
		t.Errorf("the second request: status %d, %+v, want 201 and a replay of %q", status, second, first.body)
	}
	other, status := post(t, base, "another-key", `{"item":"book"}`)
	if status != http.StatusCreated || other.replayed || other.body == first.body {
		t.Errorf("another key: status %d, %+v, want 201 and another order than %q", status, other, first.body)
	}
	if _, status := post(t, base, "the-key", `{"item":"lamp"}`); status != http.StatusUnprocessableEntity {
		t.Errorf("the key with another body: status %d, want 422", status)
	}
	if _, status := post(t, base, "", `{"item":"book"}`); status != http.StatusBadRequest {
		t.Errorf("no key: status %d, want 400", status)
	}
}

// program returns the README's complete program, listening on a free port.
func program(t *testing.T) (source, addr string) {
	t.Helper()
	for _, b := range blocks(read(t, english)) {
		if b.language != "go" || !strings.Contains(b.text, "package main") {
			continue
		}
		if !strings.Contains(b.text, readmeAddr) {
			t.Fatalf("the README's program does not listen on %s", readmeAddr)
		}
		addr = freeAddr(t)
		return strings.ReplaceAll(b.text, readmeAddr, addr), addr
	}
	t.Fatal("the README has no complete program")
	return "", ""
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// build compiles source as a package of this module. The package is not in the file system;
// an overlay gives the path of its file.
func build(t *testing.T, source string) (binary string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	write(t, file, []byte(source))
	overlay := check.Must(json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root(t), "internal", "doctest", "readme", "main.go"): file,
	}}))(t)
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	binary = filepath.Join(dir, "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", binary, "./internal/doctest/readme")
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the README's program does not build: %v\n%s", err, out)
	}
	return binary
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	check.Require(t, os.WriteFile(path, text, 0o600))
}

// start runs binary in a new directory until the test ends, and returns its URL when it
// accepts connections.
func start(t *testing.T, binary, addr string) string {
	t.Helper()
	return startIn(t, t.TempDir(), binary, addr)
}

// startIn runs binary in a directory, with more variables in its environment.
func startIn(t *testing.T, dir, binary, addr string, environment ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary)
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
	realtest.Poll(t, "the README's program to listen", func() bool {
		select {
		case <-ended:
			t.Fatalf("the README's program ended: %v\n%s", waited, &output)
		default:
		}
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

type answer struct {
	body     string
	replayed bool
}

func post(t *testing.T, base, key, body string) (answer, int) {
	t.Helper()
	req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/orders", strings.NewReader(body)))(t)
	req.Header.Set("X-User", "ann")
	if key != "" {
		req.Header.Set(semelhttp.HeaderKey, key)
	}
	res := check.Must(testClient.Do(req))(t)
	defer res.Body.Close()
	text := check.Must(io.ReadAll(res.Body))(t)
	return answer{string(text), res.Header.Get(semelhttp.HeaderReplayed) == "true"}, res.StatusCode
}
