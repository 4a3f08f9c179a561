//go:build unix

package server_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"
)

// pair is two servers on the same databases. A killed server can be started again.
type pair struct {
	files

	mu      sync.Mutex // guards the fields below
	servers [2]*process
}

func startPair(t *testing.T, f files) *pair {
	t.Helper()
	p := &pair{files: f}
	p.start(t, 0, 1)
	return p
}

// start starts servers and waits until they serve.
func (p *pair) start(t *testing.T, which ...int) {
	t.Helper()
	var started [2]*process
	for _, i := range which {
		started[i] = launch(t, p.ofServer(i).args(shortLease)...)
	}
	for _, i := range which {
		started[i].serving(t)
		p.mu.Lock()
		p.servers[i] = started[i]
		p.mu.Unlock()
	}
}

func (p *pair) at(i int) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.servers[i%2]
}

// settle sends a request to one server, or to the other if that does not respond,
// until the answer is final.
func (p *pair) settle(ctx context.Context, first int, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := first; ; i++ {
		a, err := p.at(i).try(ctx, q)
		if err == nil && !a.open() {
			return a, nil
		}
		wait := 20 * time.Millisecond // the server is down
		if after, aerr := strconv.Atoi(a.Header.Get("Retry-After")); aerr == nil {
			wait = time.Duration(after) * time.Second / 10
		}
		if perr := pause(ctx, wait); perr != nil {
			return a, perr
		}
	}
}
