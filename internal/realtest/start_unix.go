//go:build unix && !linux

package realtest

import "syscall"

// attributes of a child: a group of its own, so that a Ctrl-C in the terminal
// is not for it. Its end with the test binary is the watchdog's to see to.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
