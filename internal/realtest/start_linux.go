package realtest

import "syscall"

// attributes of a child: a group of its own, so that a Ctrl-C in the terminal
// is not for it, and an end with the thread that started it.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as, Pdeathsig: syscall.SIGKILL}
}
