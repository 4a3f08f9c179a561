package cloud

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed preload/slowdisk.c
var slowDiskSource []byte

// slowDisk compiles a library that delays every fsync of a process that loads it,
// and returns its path. It needs a C compiler.
func slowDisk(ctx context.Context, dir string, d time.Duration) (string, error) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return "", errors.New("the disk cannot be made slower: there is no cc on this machine; on Debian: apt-get install gcc")
	}
	source, library := filepath.Join(dir, "slowdisk.c"), filepath.Join(dir, "slowdisk.so")
	if err := os.WriteFile(source, slowDiskSource, 0o600); err != nil {
		return "", fmt.Errorf("write source: %w", err)
	}
	cmd := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", fmt.Sprintf("-DNANOS=%dL", d.Nanoseconds()), "-o", library, source, "-ldl")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("compile the slow disk: %w\n%s", err, &said)
	}
	// The server may run as another user.
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the directory has only this experiment's files
		return "", fmt.Errorf("let others read %s: %w", dir, err)
	}
	return library, os.Chmod(library, 0o755) //nolint:gosec // the server loads it
}
