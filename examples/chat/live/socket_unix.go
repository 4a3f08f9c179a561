//go:build unix

package live

import (
	"errors"
	"syscall"
)

// try writes as much as the kernel takes without waiting. Sockets of package net
// do not block.
func (s *socket) try(p []byte) (n int, err error) {
	if s.raw == nil {
		return 0, nil
	}
	failed := s.raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), p)
		return true
	})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	return max(n, 0), errors.Join(failed, err)
}
