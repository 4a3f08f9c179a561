package live

import (
	"net"
	"net/http"
	"sync"
)

// socketLimiter limits the WebSockets that have not said hello, or whose hello was refused, until they
// are closed. They have no user, so it counts them by address.
type socketLimiter struct {
	most, mostFrom int

	mu    sync.Mutex
	total int
	from  map[string]int
}

// admit counts a socket until the caller calls known. If there are too many, it returns the
// status of the response instead.
func (s *socketLimiter) admit(address string) (known func(), full int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.from[address] >= s.mostFrom:
		return nil, http.StatusTooManyRequests
	case s.total >= s.most:
		return nil, http.StatusServiceUnavailable
	}
	s.total++
	s.from[address]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.from[address]--; s.from[address] == 0 {
			delete(s.from, address)
		}
	}, 0
}

// connectionAddress is the address of a connection, without its port.
func connectionAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
