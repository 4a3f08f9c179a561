package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
)

// clients are connections that one epoll loop reads.
type clients struct {
	epoll  int
	conns  map[int32]*conn
	buffer []byte
	frames int64 // WebSocket frames that were received
	// messages that were received, of all connections.
	messages int64
}

// conn is the state of parsing the server's frames.
type conn struct {
	header []byte // of a frame, incomplete
	rest   int    // bytes of the payload that are missing
}

func newClients() (*clients, error) {
	fd, err := syscall.EpollCreate1(0)
	if err != nil {
		return nil, err
	}
	return &clients{epoll: fd, conns: make(map[int32]*conn), buffer: make([]byte, 64<<10)}, nil
}

func (c *clients) close() {
	for fd := range c.conns {
		_ = syscall.Close(int(fd))
	}
	_ = syscall.Close(c.epoll)
}

// connect opens a connection, sends the first frames one after the other, and waits
// for an answer to each.
func (c *clients) connect(addr netip.AddrPort, path, subprotocol string, first []string) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	c.conns[int32(fd)] = &conn{}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		return err
	}
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n%s\r\n", path, addr, subprotocol)
	answer, err := exchange(fd, []byte(request))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 101")) || !bytes.HasSuffix(answer, []byte("\r\n\r\n")) {
		return fmt.Errorf("the server answers %q", answer)
	}
	for _, text := range first {
		answer, err := exchange(fd, masked(text))
		if err != nil {
			return err
		}
		if bytes.Contains(answer, []byte("err")) {
			return fmt.Errorf("the server answers %q to %s", answer, text)
		}
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	return syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

func exchange(fd int, request []byte) ([]byte, error) {
	if _, err := syscall.Write(fd, request); err != nil {
		return nil, err
	}
	answer := make([]byte, 4096)
	n, err := syscall.Read(fd, answer)
	if err == nil && n == 0 {
		err = errClosed
	}
	return answer[:max(n, 0)], err
}

// masked is a text frame of a client, with a mask of zeros.
func masked(text string) []byte {
	frame := []byte{0x81, 0x80 | byte(len(text))}
	if len(text) > 125 {
		frame = binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(text)))
	}
	return append(append(frame, 0, 0, 0, 0), text...)
}

var errClosed = errors.New("the server closed a connection")

// receive reads what has arrived. It waits for at most the given time.
func (c *clients) receive(wait time.Duration, seen func(messages int64)) error {
	var events [256]syscall.EpollEvent
	n, err := syscall.EpollWait(c.epoll, events[:], int(wait.Milliseconds()))
	if errors.Is(err, syscall.EINTR) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range events[:max(n, 0)] {
		size, err := syscall.Read(int(e.Fd), c.buffer)
		if err != nil || size == 0 {
			return errors.Join(errClosed, err)
		}
		before := c.messages
		if err := c.parse(c.conns[e.Fd], c.buffer[:size]); err != nil {
			return err
		}
		seen(c.messages - before)
	}
	return nil
}

// parse counts frames, and the messages in them: centrifuge separates several by
// line feeds.
func (c *clients) parse(conn *conn, data []byte) error {
	for len(data) > 0 {
		if conn.rest > 0 {
			n := min(conn.rest, len(data))
			c.messages += int64(bytes.Count(data[:n], []byte("\n")))
			conn.rest -= n
			data = data[n:]
			continue
		}
		conn.header = append(conn.header, data[0])
		data = data[1:]
		h := conn.header
		switch {
		case len(h) == 1 && h[0] != 0x81:
			return fmt.Errorf("the server sent a frame of kind %#x", h[0])
		case len(h) == 2 && h[1] < 126:
			conn.rest = int(h[1])
		case len(h) == 4 && h[1] == 126:
			conn.rest = int(binary.BigEndian.Uint16(h[2:]))
		case len(h) == 10:
			conn.rest = int(binary.BigEndian.Uint64(h[2:]))
		default:
			continue
		}
		conn.header = h[:0]
		c.frames++
		c.messages++
	}
	return nil
}
