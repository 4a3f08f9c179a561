package conform

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// raceRounds is the number of rounds of a race, each with a new key. A server
// that checks and then acts loses some rounds, not always the first.
const raceRounds = 20

// round is one round of a race: many identical requests with one key.
type round struct {
	replies []reply
	last    *answer // the answer for the key after the race
	count   int     // number of effects
}

// checkRace races many identical requests over all addresses of the server, in
// several rounds. It checks for double effects first, because they explain
// differing answers.
func (t *caseRun) checkRace() {
	rounds := make([]round, 0, raceRounds)
	for i := range raceRounds {
		a := t.newRequest()
		if i == 0 && t.profile.Suite.offers(offerFixture) {
			a.script = &script{DelayMS: 50} // so that many requests arrive while it runs
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

// ranOnce fails unless each round had one effect.
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

// readDelay is the time in which the servers read the sent parts of the
// requests. A server that looks up the key before it reads the body has then
// done so for all requests.
const readDelay = 50 * time.Millisecond

// race sends a over many connections at the same time. All connections have
// sent everything but the last byte before the first one sends its last byte.
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

// raceRequest sends m to s except for the last byte, and sends that byte when
// start is closed. If s answers that the request is in progress, m is retried
// alone.
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
	_, sent := conn.Write(rest) // a server may answer and close before it has read everything
	got, err := readAnswer(bufio.NewReader(conn), method)
	if err != nil {
		return nil, errors.Join(err, sent)
	}
	return got, nil
}
