package realtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// orphanEnv tells a child of this test which servers it is to start.
const orphanEnv = "SEMEL_REALTEST_ORPHAN"

// childReport lists the servers of a child.
type childReport struct {
	Addrs []string // none may answer once the child has ended
	Homes []string // none may be there
}

// runServers runs in the child: it starts servers, reports their addresses, and waits
// to be killed, or ends at once.
func runServers(t *testing.T, kind string) {
	t.Helper()
	o := serversOf(t, kind)
	said := check.Must(json.Marshal(o))(t)
	fmt.Printf("\norphan %s\n", said)
	if kind != "ended" {
		select {} // it will be killed
	}
}

// serversOf starts the servers of a kind of child.
func serversOf(t *testing.T, kind string) childReport {
	t.Helper()
	switch kind {
	case "ended":
		s := realtest.Postgres(t)
		return childReport{Addrs: []string{s.Addr()}, Homes: []string{homeOf(t, s.URL())}}
	case "broker":
		s := realtest.OwnRabbitMQ(t)
		serverDir := realtest.BrokerHome(s)
		return childReport{Addrs: []string{s.Addr(), registerOf(t, serverDir)}, Homes: []string{serverDir}}
	case "mariadb":
		s := realtest.OwnMariaDB(t)
		data := scalar(t, openMySQL(t, s.Database(t)), "SELECT @@datadir")
		return childReport{Addrs: []string{s.Addr()}, Homes: []string{filepath.Dir(filepath.Clean(data))}}
	}
	s := realtest.OwnPostgres(t)
	o := childReport{Addrs: []string{s.Addr()}, Homes: []string{homeOf(t, s.URL())}}
	if kind == "paused" {
		connect(t, s.URL()) // a process for it, that is paused too
		s.Pause()
		return o
	}
	through := realtest.PgBouncer(t, s.URL())
	o.Addrs = append(o.Addrs, connect(t, through).PgConn().Conn().RemoteAddr().String())
	return o
}

// registerOf is where the register of names of the broker in home answers.
func registerOf(t *testing.T, serverDir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(serverDir, "epmd-*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("the broker has no register: %v", err)
	}
	port := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(logs[len(logs)-1]), ".log"), "epmd-")
	addr := "127.0.0.1:" + port
	if refuses(t, addr) {
		t.Fatalf("the register does not answer at %s", addr)
	}
	return addr
}

// homeOf asks a server where its directory is.
func homeOf(t *testing.T, url string) string {
	t.Helper()
	return filepath.Dir(show(t, url, "data_directory"))
}

// child is a test binary of its own.
type child struct{ cmd *exec.Cmd }

// startChild runs TestServersEndWithTheirTests in another process, with dir for
// its temporary files, until it has its servers.
func startChild(t *testing.T, kind, dir string) (child, childReport) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0],
		"-test.run=^TestServersEndWithTheirTests$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), orphanEnv+"="+kind, "TMPDIR="+dir)
	cmd.Stderr = os.Stderr
	out := check.Must(cmd.StdoutPipe())(t)
	check.Require(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var o childReport
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said, ok := strings.CutPrefix(lines.Text(), "orphan ")
		if !ok {
			t.Log(lines.Text())
			continue
		}
		check.Require(t, json.Unmarshal([]byte(said), &o))
		break
	}
	if len(o.Addrs) == 0 {
		t.Fatal("the child did not start its servers")
	}
	return child{cmd}, o
}

func (c child) end(t *testing.T) {
	t.Helper()
	check.Require(t, c.cmd.Process.Kill())
}

// wait waits for the child's end, however it ended.
func (c child) wait(t *testing.T) {
	t.Helper()
	_ = c.cmd.Wait()
	t.Logf("the child: %s", c.cmd.ProcessState)
}
