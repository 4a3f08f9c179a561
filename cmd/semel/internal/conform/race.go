package conform

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// raceRounds is how often a race is repeated, each time with a fresh key. A server
// that checks and then acts loses some rounds, and not always the first.
const raceRounds = 20

// round is one race: many identical requests with one key.
type round struct {
	replies []reply
	last    *answer // what the key is answered when the race is over
	count   int     // how often the effect happened
}

// checkRace races many identical requests, spread over all addresses of the server, in
// several rounds. A double effect is judged first, over all rounds: it is why the
// answers differ.
func (t *caseRun) checkRace() {
	rounds := make([]round, 0, raceRounds)
	for i := range raceRounds {
		a := t.newRequest()
		if i == 0 && t.profile.Suite.offers(offerFixture) {
			a.script = &script{DelayMS: 50} // so that many come while it runs
		}
		replies := t.race(a)
		rounds = append(rounds, round{replies, t.sendUntilSettled(a), t.effectsOf(a.op)})
	}
	t.ranOnce(rounds)
	t.quickRace()
	for _, r := range rounds {
		t.mustAgree(r.replies, r.last)
		t.mustHaveOneFirst(r.replies)
	}
}

// ranOnce fails unless the effect happened once in each round.
func (t *caseRun) ranOnce(rounds []round) {
	doubled, worst := 0, 0
	for _, r := range rounds {
		if r.count > 1 {
			doubled++
			worst = max(worst, r.count)
		}
	}
	if doubled > 0 {
		t.failf("the handler ran %s for one key, in %d of %d rounds of %d requests at once it ran more than once",
			times(worst), doubled, len(rounds), t.raceSize)
	}
	for _, r := range rounds {
		if r.count != 1 {
			t.failf("the effect happened %s for one key, want once", times(r.count))
		}
	}
}

// readDelay is how long the servers have to read what was sent of the requests. One
// that looks for the key before it reads the body has then looked in all of them.
const readDelay = 50 * time.Millisecond

// race sends a over many connections at the same time: all are open, and have sent
// everything but the last byte, before the first one sends that.
func (t *caseRun) race(a request) []reply {
	m := t.message(a)
	servers := append([]server{t.server}, t.others...)
	replies, start := make([]reply, t.raceSize), make(chan struct{})
	var ready, ended sync.WaitGroup
	ready.Add(t.raceSize)
	for i := range replies {
		ended.Go(func() {
			replies[i] = t.raceRequest(servers[i%len(servers)], m, &ready, start)
		})
	}
	ready.Wait()
	t.sleep(readDelay)
	close(start)
	ended.Wait()
	for _, r := range replies {
		if r.err == nil {
			t.record(a.op, m, r.got)
		}
	}
	return replies
}

// raceRequest sends m to s, but for its last byte, and that byte when start is closed.
// When s says that it is too busy, m is sent again on its own.
func (t *caseRun) raceRequest(s server, m message, ready *sync.WaitGroup, start <-chan struct{}) reply {
	conn, err := s.dial(t.ctx)
	text := s.bytes(m, false)
	if err == nil {
		defer conn.Close()
		defer context.AfterFunc(t.ctx, func() { conn.Close() })()
		_, err = conn.Write(text[:len(text)-1])
	}
	ready.Done()
	<-start
	if err != nil {
		return reply{err: err}
	}
	got, err := finish(conn, text[len(text)-1:], m.method)
	for err == nil && got.inProgress() && t.ctx.Err() == nil {
		t.sleep(pollEvery)
		got, err = s.exchange(t.ctx, m)
	}
	return reply{got, err}
}

// finish sends the rest of a request and returns the answer.
func finish(conn net.Conn, rest []byte, method string) (*answer, error) {
	_, sent := conn.Write(rest) // a server may answer, and close, before it has read everything
	got, err := readAnswer(bufio.NewReader(conn), method)
	if err != nil {
		return nil, errors.Join(err, sent)
	}
	return got, nil
}
