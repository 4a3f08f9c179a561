package realtest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
)

// RedisProxies are proxies in front of several Redis servers, of which a client learns the
// addresses from Sentinel or from a cluster.
type RedisProxies struct{ byAddr map[string]*Proxy }

// NewRedisProxies starts a proxy in front of each server. They end with the test.
func NewRedisProxies(tb testing.TB, servers ...*RedisServer) *RedisProxies {
	tb.Helper()
	p := &RedisProxies{make(map[string]*Proxy, len(servers))}
	for _, s := range servers {
		p.byAddr[s.Addr()] = NewRedisProxy(tb, s.Addr())
	}
	return p
}

// Dial connects to a server by its proxy, and to other addresses directly.
func (p *RedisProxies) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if proxy := p.byAddr[addr]; proxy != nil {
		addr = proxy.Addr()
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, addr) //nolint:wrapcheck // the client expects errors of the network
}

// dialer is Dial, or the default of a client if there are no proxies.
func (p *RedisProxies) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if p == nil {
		return nil
	}
	return p.Dial
}

// EatReply loses the reply to the first request that matches, at whichever server. It is
// [Proxy.EatReply] of all proxies. The function it returns reports whether a reply was lost,
// and disarms the proxies.
func (p *RedisProxies) EatReply(match Match) (lost func() bool) {
	var taken atomic.Bool
	var faults []*Fault
	for _, proxy := range p.byAddr {
		faults = append(faults, proxy.EatReply(func(request []byte) bool {
			return !taken.Load() && match(request) && taken.CompareAndSwap(false, true)
		}))
	}
	return func() bool {
		happened := false
		for _, f := range faults {
			happened = !f.Disarm() || happened
		}
		return happened
	}
}
