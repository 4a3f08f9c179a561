package live

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// Sizes of the buffers of a connection. Those of net/http are 4 kB each, which is
	// most of the memory of an idle session.
	readBuffer, writeBuffer = 512, 256
	// maxPending limits what waits for the kernel: one write of the hub and control
	// frames.
	maxPending = 256 << 10
)

var errPending = errors.New("the peer does not read")

// socket is a connection whose Write does not block. It first tries to write
// without waiting; a goroutine writes the rest, if there is any. So a session needs
// no goroutine and no stack for writing while its peer keeps up.
type socket struct {
	net.Conn

	raw     syscall.RawConn // nil: the connection cannot be tried, as with TLS
	timeout time.Duration   // of one write

	mu      sync.Mutex
	pending []byte
	writing bool   // a goroutine writes pending
	ready   func() // called once when the goroutine has ended; nil: nothing waits
	err     error
}

func newSocket(conn net.Conn, timeout time.Duration) *socket {
	s := &socket{Conn: conn, timeout: timeout}
	if c, ok := conn.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn()
	}
	return s
}

// Write writes p, or keeps a copy of it and writes it later.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(p)
}

// writeThen is Write, and reports whether everything was written or has failed.
// Otherwise it calls ready later.
func (s *socket) writeThen(p []byte, ready func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.write(p); err == nil && s.writing {
		s.ready = ready
		return false
	}
	return true
}

func (s *socket) write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n := len(p)
	if !s.writing {
		done, err := s.try(p)
		if err != nil {
			return done, s.fail(err)
		}
		if p = p[done:]; len(p) == 0 {
			return n, nil
		}
	}
	if len(s.pending)+len(p) > maxPending {
		return 0, s.fail(errPending)
	}
	s.pending = append(s.pending, p...)
	if !s.writing {
		s.writing = true
		go s.writePending()
	}
	return n, nil
}

// fail closes the connection, which ends the goroutine that reads it.
func (s *socket) fail(err error) error {
	s.err = err
	_ = s.Close()
	return err
}

func (s *socket) writePending() {
	s.mu.Lock()
	for len(s.pending) > 0 && s.err == nil {
		p := s.pending
		s.pending = nil
		s.mu.Unlock()
		err := s.SetWriteDeadline(time.Now().Add(s.timeout))
		if err == nil {
			_, err = s.Conn.Write(p)
		}
		err = errors.Join(err, s.SetWriteDeadline(time.Time{}))
		s.mu.Lock()
		if err != nil {
			_ = s.fail(err)
		}
	}
	ready := s.ready
	s.pending, s.writing, s.ready = nil, false, nil
	s.mu.Unlock()
	if ready != nil {
		ready()
	}
}

// upgrader gives the WebSocket library a socket with small buffers.
type upgrader struct {
	http.ResponseWriter

	timeout time.Duration
	socket  *socket
}

// Hijack implements http.Hijacker.
func (u *upgrader) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := rw.Peek(rw.Reader.Buffered()) // frames that the client has sent already
	reader := bufio.NewReaderSize(bytes.NewReader(early), max(readBuffer, len(early)))
	_, _ = reader.Peek(len(early))
	u.socket = newSocket(conn, u.timeout)
	return u.socket, bufio.NewReadWriter(reader, bufio.NewWriterSize(u.socket, writeBuffer)), nil
}
