package server

import (
	"net"
	"net/http"
	"net/netip"
	"runtime"
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

// addressOf returns the client's address: for IPv6 the network, because a client often has
// all of its addresses.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // 64 is valid for IPv6
		return network.String()
	}
	return address.String()
}
