package conform

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"
)

// A quick round sends a few requests over open connections, so that hundreds of
// rounds take seconds. It finds servers that read the whole request, look up
// the key, and then run a fast handler. The window between look-up and handler
// is so short that often fewer than one round in fifty hits it.
const (
	quickRounds   = 500
	quickTimeout  = 10 * time.Second // the limit for slow servers
	quickRequests = 4                // requests per round
)

// quickRace runs quick rounds until one shows a double effect, or all rounds
// have run. Counting effects takes longer than a round, so it is done only when
// the answers of a round differ, and after the last round.
func (t *caseRun) quickRace() {
	racers := make([]*raceConn, quickRequests)
	servers := append([]server{t.server}, t.others...)
	for i := range racers {
		racers[i] = &raceConn{server: servers[i%len(servers)]}
		defer racers[i].close()
	}
	ctx, cancel := context.WithTimeout(t.ctx, quickTimeout)
	defer cancel()
	var ops []string
	for len(ops) < t.quickRounds && ctx.Err() == nil {
		a := t.newRequest()
		m := t.message(a)
		if err := sendAtOnce(t.ctx, racers, m, func(got *answer) { t.record(a.op, m, got) }); err != nil {
			t.failf("no answer in a round of %d requests: %v", quickRequests, err)
		}
		ops = append(ops, a.op)
		if t.successes(a.op) > 1 {
			t.countQuickRound(a.op)
		}
	}
	t.countQuickRounds(ops)
}

// countQuickRounds counts the effects of the rounds whose answers did not
// differ. It stops after quickTimeout, because a counter can be slow.
func (t *caseRun) countQuickRounds(ops []string) {
	ctx, cancel := context.WithTimeout(t.ctx, quickTimeout)
	defer cancel()
	for _, op := range ops {
		if ctx.Err() != nil {
			return
		}
		t.countQuickRound(op)
	}
}

// countQuickRound fails if the effect of a round happened more than once.
func (t *caseRun) countQuickRound(op string) {
	if n := t.effectsOf(op); n > 1 {
		t.failf("the handler ran %s for one key, in a quick round of %d requests at once", times(n), quickRequests)
	}
}

// raceConn sends requests over one connection, as long as the server keeps it
// open.
type raceConn struct {
	server server
	conn   net.Conn
	in     *bufio.Reader
	stop   func() bool
}

func (r *raceConn) close() {
	if r.conn != nil {
		r.stop()
		r.conn.Close()
		r.conn = nil
	}
}

// prepare sends all of text but its last byte.
func (r *raceConn) prepare(ctx context.Context, text []byte) error {
	for fresh := r.conn == nil; ; fresh = true {
		if r.conn == nil {
			conn, err := r.server.dial(ctx)
			if err != nil {
				return err
			}
			r.conn, r.in = conn, bufio.NewReader(conn)
			r.stop = context.AfterFunc(ctx, func() { conn.Close() })
		}
		_, err := r.conn.Write(text[:len(text)-1])
		if err == nil {
			return nil
		}
		r.close()
		if fresh { // an old connection may have been closed as idle
			return err
		}
	}
}

// sendAtOnce sends m over all connections at the same time and passes the
// answers to tell.
func sendAtOnce(ctx context.Context, racers []*raceConn, m message, tell func(*answer)) error {
	text := racers[0].server.bytes(m, true)
	for _, r := range racers {
		if err := r.prepare(ctx, text); err != nil {
			return err
		}
	}
	for _, r := range racers { // sequential writes are closer together than goroutines
		if _, err := r.conn.Write(text[len(text)-1:]); err != nil {
			return err
		}
	}
	var failed error
	for _, r := range racers {
		got, err := readAnswer(r.in, m.method)
		if err != nil {
			r.close()
			failed = errors.Join(failed, err)
			continue
		}
		tell(got)
		if got.closes {
			r.close()
		}
	}
	return failed
}
