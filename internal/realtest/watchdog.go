package realtest

import (
	"fmt"
	"os/exec"
	"syscall"
)

// watchdog is a shell's program: it waits until nobody holds the other end of
// its input, kills all who work in the directory $1, stopped or not, and removes
// it. A PostgreSQL that was killed leaves a segment of shared memory behind,
// whose number is in its postmaster.pid. Where there is no /proc, the pids that
// the servers left in files are taken, and their children.
const watchdog = `
trap '' HUP INT TERM
cat >/dev/null
workers() {
  if [ -d /proc/self ]; then
    find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null | cut -d/ -f3
  else
    for pid in $(cat "$1"/*/postmaster.pid "$1"/*.pid 2>/dev/null | grep -E '^[0-9]{2,}$' | head -n 1); do
      pgrep -P "$pid"; echo "$pid"
    done
  fi
}
for round in 1 2 3 4 5; do
  pids=$(workers "$1")
  [ -n "$pids" ] || break
  kill -KILL $pids 2>/dev/null
done
for segment in $(sed -n '7s/.* //p' "$1"/*/postmaster.pid 2>/dev/null); do
  ipcrm -m "$segment" 2>/dev/null
done
cd / && rm -rf "$1"
`

// watch starts the watchdog. It is in a session of its own: what ends the test
// binary must not end it.
func (h *home) watch() error {
	h.guard = exec.Command("/bin/sh", "-c", watchdog, "semel-realtest", h.dir) //nolint:noctx // it outlives every context
	h.guard.Dir = "/"
	h.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
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

// close kills all who work in the home and removes it.
func (h *home) close() error {
	h.hold.Close()
	if err := h.guard.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w", h.dir, err)
	}
	h.owner.Close()
	return nil
}
