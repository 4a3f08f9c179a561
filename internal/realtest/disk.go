package realtest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// Disk is the disk of a server of its own. While a test holds it, no call of the server
// that waits for the disk returns, so nothing that the server writes is durable.
type Disk struct {
	t    testing.TB
	hold string // a file that exists while the disk is held
	env  []string
}

//go:embed disk/hold.c
var holdSource []byte

// NewDisk makes a disk for servers that the test starts on it. It needs Linux and a C
// compiler.
func NewDisk(tb testing.TB) *Disk {
	tb.Helper()
	compiler := engine{name: "cc", program: "cc", packages: "gcc libc6-dev"}
	at := thisMachine().find(compiler)
	if at == nil {
		thisMachine().missing(tb, compiler, "there is no C compiler on this machine; on Debian: apt-get install "+compiler.packages)
	}
	dir, err := os.MkdirTemp("", "semel-disk-") //nolint:usetesting // servers run as another user, who may not enter tb.TempDir
	check.Require(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	library := filepath.Join(dir, "hold.so")
	check.Require(tb, buildHold(tb.Context(), at.program, dir, library), "build the library that holds a disk")
	hold := filepath.Join(dir, "hold")
	return &Disk{t: tb, hold: hold, env: []string{"LD_PRELOAD=" + library, "SEMEL_TEST_HOLD=" + hold}}
}

func buildHold(ctx context.Context, compiler, dir, library string) error {
	source := filepath.Join(dir, "hold.c")
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(source, holdSource, 0o644); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Hold holds the disk until release is called, which may be repeated, or until the end
// of the test.
func (d *Disk) Hold() (release func()) {
	d.t.Helper()
	if err := os.WriteFile(d.hold, nil, 0o644); err != nil {
		d.t.Errorf("hold the disk: %v", err)
	}
	release = sync.OnceFunc(func() { _ = os.Remove(d.hold) })
	d.t.Cleanup(release)
	return release
}
