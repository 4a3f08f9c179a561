package conform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// perform runs the script. The effect happens unless the script fails.
func (s *fakeServer) perform(ctx context.Context, d demand) stored {
	sc := d.Script
	s.mu.Lock()
	if sc.Once && s.acted[d.Op] {
		sc.Status, sc.Fail = 0, ""
	}
	s.acted[d.Op] = true
	if s.flaws[effectFirst] {
		s.effects[d.Op]++
	}
	if d.Script.DelayMS > 0 {
		s.mu.Unlock()
		<-time.After(time.Duration(d.Script.DelayMS) * time.Millisecond)
		s.mu.Lock()
	}
	s.pass(ctx, d.Op)
	defer s.mu.Unlock()
	if sc.Fail == "panic" {
		panic(http.ErrAbortHandler)
	}
	if sc.Status >= 400 || sc.Fail != "" || s.down && !s.flaws[runsWhileDown] {
		return failed(sc.Status)
	}
	if !s.flaws[effectFirst] {
		s.effects[d.Op]++
	}
	return s.made(d, sc.Status)
}

// pass waits at the gate of op, without the lock.
func (s *fakeServer) pass(ctx context.Context, op string) {
	g, life := s.gates[op], s.life
	if g == nil || s.flaws[noLock] && g.held > 0 {
		return
	}
	g.held++
	s.mu.Unlock()
	gone := ctx.Done()
	if !s.flaws[forgetsAfterDisconnect] {
		gone = nil
	}
	select {
	case <-g.opened:
		if gone != nil {
			select {
			case <-gone:
			case <-time.After(time.Second):
			}
		}
	case <-gone:
	case <-life:
		s.mu.Lock()
		defer s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
}

func failed(status int) stored {
	if status == 0 {
		status = http.StatusInternalServerError
	}
	return stored{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"op":"failed"}`)}
}

func (s *fakeServer) made(d demand, status int) stored {
	made := stored{status: status, header: http.Header{"Content-Type": {"application/json"}}}
	if status == 0 {
		made.status = http.StatusCreated
	}
	s.act(made.header, d.Script.Headers)
	if made.status != http.StatusNoContent {
		made.body, _ = json.Marshal(map[string]any{"op": d.Op, "by": d.principal, "server": s.name, "number": s.effects[d.Op]})
	}
	if n := d.Script.BodyBytes; n > 0 {
		made.body = bytes.Repeat([]byte("x"), n)
	}
	return made
}

// act sets the script's headers.
func (s *fakeServer) act(h http.Header, scripted map[string]string) {
	for name, value := range scripted {
		if s.flaws[spellsOtherwise] {
			value = strings.NewReplacer("; ", ";", "utf-8", "UTF-8", "é", "\xe9", "=secret", "=secret; Path=/").Replace(value)
		}
		if !s.flaws[actsNoHeaders] {
			h.Set(name, value)
		}
	}
	if s.flaws[behindProxy] {
		h.Del("Date")
		h.Del("Keep-Alive")
	}
	if s.flaws[replaysDate] && h.Get("Date") == "" {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
}
