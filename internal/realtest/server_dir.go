package realtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// nobodyUser is the user of the servers if the tests run as root, because servers
// refuse root.
const nobodyUser = 65534

// serverDir is a server's directory. It is removed, with all its processes, when it
// is closed or when the test binary has ended.
type serverDir struct {
	dir   string
	as    *syscall.Credential // nil: this process's user
	owner *os.File            // locked as long as the test binary lives
	guard *exec.Cmd
	hold  io.Closer // the watchdog waits for its end
}

// prefix of all server directories; the rest of the name is random.
const prefix = "semel-realtest-"

// lockName is the file that the owner of a server directory keeps locked.
const lockName = "owner"

// newServerDir makes a directory in base that the server's user may write to.
func newServerDir(base string) (*serverDir, error) {
	removeStale(base)
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	h := &serverDir{dir: dir}
	if os.Geteuid() == 0 {
		h.as = &syscall.Credential{Uid: nobodyUser, Gid: nobodyUser}
		if err := os.Chown(dir, nobodyUser, nobodyUser); err != nil {
			return nil, fmt.Errorf("give directory away: %w", err)
		}
	}
	if h.owner, err = own(dir); err != nil {
		return nil, err
	}
	return h, h.watch()
}

// baseDir is the default directory for temporary files, or /tmp if another user
// cannot access the default one.
func baseDir() string {
	base := os.TempDir()
	if os.Geteuid() != 0 {
		return base
	}
	for dir := base; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			return base
		}
	}
}

// diskDir is baseDir, or /tmp if that is in memory. MariaDB takes a log in /dev/shm for persistent memory,
// and never waits for a disk, which tests of durability need.
func diskDir() string {
	if base := baseDir(); !strings.HasPrefix(base, "/dev/shm") {
		return base
	}
	return "/tmp"
}

// own locks a file in dir for the life of this process. The directory gets its name
// only after that, so that no other process takes it for a stale one.
func own(dir string) (*os.File, error) {
	f, err := os.Create(filepath.Join(dir, lockName+".new"))
	if err != nil {
		return nil, fmt.Errorf("create lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock directory: %w", err), f.Close())
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, lockName)); err != nil {
		return nil, errors.Join(fmt.Errorf("name lock: %w", err), f.Close())
	}
	return f, nil
}

// file is a path in the directory.
func (h *serverDir) file(name string) string { return filepath.Join(h.dir, name) }

// write writes a file that the server's user can read.
func (h *serverDir) write(name, text string) error {
	path := h.file(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return h.giveAway(name)
}

// giveAway makes the server's user the owner of a file.
func (h *serverDir) giveAway(name string) error {
	if h.as == nil {
		return nil
	}
	if err := os.Chown(h.file(name), nobodyUser, nobodyUser); err != nil {
		return fmt.Errorf("give %s away: %w", name, err)
	}
	return nil
}

// tail is the end of a log, 8 kB of it at most, because RabbitMQ logs the cause
// long before its last line.
func tail(name string) string {
	const most = 8 << 10
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "(no log)"
	}
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
