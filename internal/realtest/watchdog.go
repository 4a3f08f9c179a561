package realtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// watchdog is a shell program. It waits until the other end of its input is closed,
// kills all processes of $HOME_DIR, also stopped ones, and removes the directory. A
// killed PostgreSQL leaves a shared memory segment, whose number is in its
// postmaster.pid. The directory is not on the watchdog's own command line, because
// the processes are found by their command lines.
const watchdog = `
trap '' HUP INT TERM
cat >/dev/null
workers() {
  if [ -e /proc/self/cmdline ]; then
    printf '%s' "${HOME_DIR##*/}" | grep -alFf - /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3
  else
    printf '%s' "${HOME_DIR##*/}" >"$HOME_DIR/name"
    ps -axo pid=,command= | grep -aFf "$HOME_DIR/name" | grep -v grep | awk '{print $1}'
  fi
}
round=0
while [ $round -lt 500 ]; do
  round=$((round + 1))
  pids=$(workers)
  [ -n "$pids" ] || break
  kill -KILL $pids 2>/dev/null
  sleep 0.02
done
for segment in $(sed -n '7s/.* //p' "$HOME_DIR"/*/postmaster.pid 2>/dev/null); do
  ipcrm -m "$segment" 2>/dev/null
done
rm -rf "$HOME_DIR"
`

// remover is the watchdog's command for a directory. It is in a session of its
// own: what ends the test binary must not end it.
func remover(dir string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", watchdog) //nolint:noctx // it outlives every context
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "HOME_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// watch starts the watchdog.
func (h *serverDir) watch() error {
	h.guard = remover(h.dir)
	hold, err := h.guard.StdinPipe()
	if err != nil {
		return fmt.Errorf("connect watchdog: %w", err)
	}
	if err := h.guard.Start(); err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	h.hold = hold
	return nil
}

// close kills all that work for the home and removes it.
func (h *serverDir) close() error {
	h.hold.Close()
	if err := h.guard.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w", h.dir, err)
	}
	h.owner.Close()
	return nil
}

// removeStale removes homes whose owner has ended and whose watchdog did not
// come to it. Those of another user stay.
func removeStale(base string) {
	locks, _ := filepath.Glob(filepath.Join(base, prefix+"*", lockName))
	for _, name := range locks {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = remover(filepath.Dir(name)).Run() // its input has ended already
		}
		f.Close()
	}
}
