package server

import (
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/semelhttp"
)

// hashWait is how long a request waits while the passwords of other requests are hashed.
const hashWait = 5 * time.Second

func newUserService(s *app) userService {
	return userService{
		app: s, hasher: accounts.NewHasher(s.config.argon2, runtime.GOMAXPROCS(0), hashWait),
		signUps:    accounts.NewLimiter(s.config.signUps, time.Hour),
		logIns:     accounts.NewLimiter(s.config.logIns, time.Minute),
		logInsFrom: accounts.NewLimiter(namesPerAddress*s.config.logIns, time.Minute),
	}
}

// namesPerAddress is how many users behind one address can reach their own limit of
// log-ins.
const namesPerAddress = 10

// limit returns a problem if there were too many requests of key.
func (userService) limit(l *accounts.Limiter, key string) *semelhttp.Problem {
	after, ok := l.Allow(key, time.Now())
	if ok {
		return nil
	}
	p := problem(codeTooMany, "", "Nothing was done. Try again later.")
	p.RetryAfter = after
	return p
}

// addressOf returns the client's address: the address of the connection or, if the connection
// comes from a trusted proxy, the last address in X-Forwarded-For that is not a trusted proxy.
// Each proxy appends the address of its own client; the client may have invented the addresses
// before it. For IPv6 the result is the network, because one client often has all its addresses.
func (c *config) addressOf(r *http.Request) string {
	address, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !slices.ContainsFunc(c.proxies, func(proxy netip.Prefix) bool { return proxy.Contains(address) }) {
			break
		}
		before, ok := parseAddress(strings.TrimSpace(hop))
		if !ok {
			break
		}
		address = before
	}
	if address.Is6() {
		network, _ := address.Prefix(64) // 64 is valid for IPv6
		return network.String()
	}
	return address.String()
}

// parseAddress reads an address with or without a port.
func parseAddress(text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		pair, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		address = pair.Addr()
	}
	return address.Unmap().WithZone(""), true
}
