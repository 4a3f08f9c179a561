package conform

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxAnswer is the limit for reading a response body, in bytes.
const maxAnswer = 64 << 20

// line is one header line, sent byte for byte.
type line struct{ name, value string }

// message is a request on the wire. net/http would refuse or correct many of
// the requests that the cases need.
type message struct {
	method  string
	path    string // with its query
	lines   []line
	body    []byte
	chunked bool
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	closes bool // the server closes the connection
}

// server is one address of the server under test.
type server struct{ base *url.URL }

func newServer(base string) (server, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	switch {
	case err != nil:
		return server{}, err
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return server{}, fmt.Errorf("URL %q: want http://host or https://host", base)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return server{}, fmt.Errorf("URL %q: want no query, no fragment and no user", base)
	default:
		return server{u}, nil
	}
}

// dial connects. The connection is closed when ctx ends.
func (s server) dial(ctx context.Context) (net.Conn, error) {
	host := s.base.Host
	if s.base.Port() == "" {
		host = net.JoinHostPort(s.base.Hostname(), s.base.Scheme)
	}
	if s.base.Scheme == "https" {
		d := tls.Dialer{Config: &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", host)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", host)
}

// bytes returns m in the format of HTTP/1.1. Unless keep is true, it asks the
// server to close the connection.
func (s server) bytes(m message, keep bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", m.method, s.base.EscapedPath()+m.path, s.base.Host)
	if !keep {
		b.WriteString("Connection: close\r\n")
	}
	for _, l := range m.lines {
		b.WriteString(l.name + ": " + l.value + "\r\n")
	}
	switch {
	case m.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		writeChunks(&b, m.body)
	case m.body != nil:
		b.WriteString("Content-Length: " + strconv.Itoa(len(m.body)) + "\r\n\r\n")
		b.Write(m.body)
	default:
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

// writeChunks writes body in two chunks, which the server must join.
func writeChunks(b *bytes.Buffer, body []byte) {
	half := len(body) / 2
	for _, part := range [][]byte{body[:half], body[half:]} {
		if len(part) > 0 {
			fmt.Fprintf(b, "%x\r\n%s\r\n", len(part), part)
		}
	}
	b.WriteString("0\r\n\r\n")
}

// exchange sends m over a new connection and returns the answer.
func (s server) exchange(ctx context.Context, m message) (*answer, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// A server may answer and close before it has read everything.
	_, werr := conn.Write(s.bytes(m, false))
	a, err := readAnswer(bufio.NewReader(conn), m.method)
	if err != nil {
		return nil, errors.Join(err, werr, ctx.Err())
	}
	return a, nil
}

// readAnswer reads the next final response.
func readAnswer(r *bufio.Reader, method string) (*answer, error) {
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return nil, fmt.Errorf("read response: %w", err)
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read response body: %w", err)
		}
		return &answer{status: resp.StatusCode, header: resp.Header, body: body, closes: resp.Close}, nil
	}
}
