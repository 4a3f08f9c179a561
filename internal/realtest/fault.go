package realtest

import (
	"bytes"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

// Match says whether a request is the one to break. The request is given as the
// statements it executes, each ended by a semicolon and a newline, the text of
// prepared ones included. Statements that are only prepared are not in it. A
// request is what is sent up to the point where the client awaits an answer: one
// batch, for example, is one request.
//
// It must not call the proxy.
type Match func(request []byte) bool

// Commit matches a request that commits a transaction, by itself or as the last
// of several statements.
func Commit() Match {
	commit := regexp.MustCompile(`(?i)(^|;)\s*commit\s*(;|$)`)
	return commit.Match
}

// SQL matches a request with a statement that contains text, letter by letter.
func SQL(text string) Match {
	return func(request []byte) bool { return bytes.Contains(request, []byte(text)) }
}

// Fault is one fault that a [Proxy] is armed with. It happens to the first
// request that matches, on whichever connection, and never again.
type Fault struct {
	proxy    *Proxy
	kind     kind
	match    Match
	once     sync.Once // closes fired
	fired    chan struct{}
	answered chan struct{}
}

type kind int

const (
	eatReply kind = iota
	cutAfter
	cutBefore
	eatReady
)

// EatReply lets the request that matches reach the server, waits for the whole
// reply, swallows it and closes the client's connection: what was asked for is
// done, and the client cannot know.
func (p *Proxy) EatReply(match Match) *Fault { return p.arm(eatReply, match) }

// EatReady is EatReply that swallows no more than the last message of the reply. From
// PostgreSQL that is the server's word that it is ready for the next request: the client
// has the answer to each of its statements, but where that word is what a transaction
// ends with, it cannot know. From MariaDB it is the end of the last statement's answer.
func (p *Proxy) EatReady(match Match) *Fault { return p.arm(eatReady, match) }

// CutAfter lets the request that matches reach the server and resets the
// client's connection at once: the client goes on while the server may still be
// at work. The server side of the connection stays open until it has answered, and
// a driver that now asks it to cancel the request is not heard.
func (p *Proxy) CutAfter(match Match) *Fault { return p.arm(cutAfter, match) }

// CutBefore resets both sides of the connection instead of passing on the
// request that matches: what was asked for is not done, and the client cannot
// know.
func (p *Proxy) CutBefore(match Match) *Fault { return p.arm(cutBefore, match) }

func (p *Proxy) arm(k kind, match Match) *Fault {
	f := &Fault{proxy: p, kind: k, match: match, fired: make(chan struct{}), answered: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, f)
	return f
}

// happened is called when the client's connection is closed.
func (f *Fault) happened() { f.once.Do(func() { close(f.fired) }) }

// ended is called when the server has finished the request.
func (f *Fault) ended() { close(f.answered) }

// Fired is closed once the fault has happened: the client's connection is
// closed.
func (f *Fault) Fired() <-chan struct{} { return f.fired }

// Answered is closed once the server has answered the request, or can answer no
// more because its connection is gone. With [Proxy.EatReply] that is before
// [Fault.Fired].
func (f *Fault) Answered() <-chan struct{} { return f.answered }

// Wait waits until the fault has happened and the server has answered. After 60
// seconds it ends the test.
func (f *Fault) Wait(tb testing.TB) {
	tb.Helper()
	bound := time.After(ceiling)
	for _, done := range []<-chan struct{}{f.fired, f.answered} {
		select {
		case <-done:
		case <-bound:
			tb.Fatal("the fault did not happen: no request matched, or the server did not answer")
		}
	}
}

// Disarm takes the fault back, and reports whether it had not happened yet.
func (f *Fault) Disarm() bool {
	p := f.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.armed, f)
	if i < 0 {
		return false
	}
	p.armed = slices.Delete(p.armed, i, i+1)
	return true
}
