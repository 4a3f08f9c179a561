package realtest

import (
	"context"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
)

// Proxy is between the clients of a database and a server, and breaks what they
// say to each other when told to. Until then it changes nothing. It speaks no TLS: a
// client of PostgreSQL that asks for it is told to go without, and a client of MariaDB
// must not ask for it, nor for compression.
// Its methods may be called from any goroutine.
type Proxy struct {
	t        testing.TB
	listener net.Listener
	target   string
	follow   follow
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	armed  []*Fault
	links  map[*link]struct{}
	delay  time.Duration
	open   chan struct{} // closed while bytes may pass
}

// NewProxy starts a proxy in front of the PostgreSQL or PgBouncer at the address
// target, host and port. It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return newProxy(tb, target, followPostgres)
}

// NewMySQLProxy starts a proxy in front of the MariaDB at the address target, host and
// port. It ends with the test.
func NewMySQLProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return newProxy(tb, target, followMySQL)
}

// NewRedisProxy starts a proxy in front of the Redis at the address target, host and port.
// Each command of a pipeline is a request of its own. It ends with the test.
func NewRedisProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return newProxy(tb, target, followRedis)
}

// NewHTTP2Proxy starts a proxy in front of the gRPC server without TLS at the address target,
// host and port. A request is given to [Match] as its path, a blank and its body. A fault
// breaks the connection, and so the other requests that are in flight on it. The proxy ends
// with the test.
func NewHTTP2Proxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return newProxy(tb, target, followHTTP2)
}

func newProxy(tb testing.TB, target string, follow follow) *Proxy {
	tb.Helper()
	var listen net.ListenConfig
	l, err := listen.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	check.Require(tb, err, "start proxy")
	p := &Proxy{t: tb, listener: l, target: target, follow: follow, links: make(map[*link]struct{}), open: make(chan struct{})}
	close(p.open)
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr is the host and port at which the proxy accepts connections to its target.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the server's address with the proxy in place of its host and port.
func (p *Proxy) URL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		p.t.Errorf("parse %q: %v", server, err)
		return ""
	}
	u.Host = p.Addr()
	return u.String()
}

// DSN is the data source name of a MariaDB's database with the proxy in place of its
// address.
func (p *Proxy) DSN(database string) string {
	c, err := mysql.ParseDSN(database)
	if err != nil {
		p.t.Errorf("parse %q: %v", database, err)
		return ""
	}
	c.Addr = p.Addr()
	return c.FormatDSN()
}

// Reset breaks all connections that stand: both sides see them reset. New ones
// are served.
func (p *Proxy) Reset() {
	for _, l := range p.all() {
		reset(l.client)
		reset(l.server)
	}
}

// BlackHole blocks all data in both directions while it is on, like a network
// partition: connections stay open, new ones are accepted, and no reply arrives.
// Data sent meanwhile passes after it is off.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		if on {
			p.open = make(chan struct{})
		}
	default:
		if !on {
			close(p.open)
		}
	}
}

// Delay lets each request and each reply wait that long before it passes.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // it is closed
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve connects a client with the target until either goes.
func (p *Proxy) serve(client net.Conn) {
	dialer := net.Dialer{Timeout: ceiling}
	server, err := dialer.DialContext(context.WithoutCancel(p.t.Context()), "tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := newLink(p, client, server)
	if !p.add(l) {
		l.close()
		return
	}
	defer p.remove(l)
	l.run()
}

// add reports whether the proxy still works.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = struct{}{}
	return !p.closed
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// pass waits until bytes may pass, or until done.
func (p *Proxy) pass(done <-chan struct{}) {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-done:
		}
	}
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
	case <-done:
	}
}

// take disarms the first fault that the request matches, and returns it.
func (p *Proxy) take(request []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.armed, func(f *Fault) bool { return f.match(request) })
	if i < 0 {
		return nil
	}
	f := p.armed[i]
	p.armed = slices.Delete(p.armed, i, i+1)
	return f
}

// leavesToFinish reports whether a fault is set for the connection with this key
// that lets the server finish, so that cancel requests must not reach it.
func (p *Proxy) leavesToFinish(key string) bool {
	return slices.ContainsFunc(p.all(), func(l *link) bool { return l.isBrokenWith(key) })
}

// rearm undoes take.
func (p *Proxy) rearm(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = slices.Insert(p.armed, 0, f)
}

// close ends all connections and waits for their goroutines.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	for _, l := range p.all() {
		l.close()
	}
	p.running.Wait()
}

// reset closes a connection so that the other side sees it reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a connection that is gone needs none
	}
	conn.Close()
}
