package semelhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

var (
	errNoResponse = errors.New("no response in time")
	errNoBase     = errors.New("Transport.Base returned neither a response nor an error")
)

// try sends the request once more. A response that is short, or may be asked for
// again, is read before it counts as one.
func (s *sending) try() (*http.Response, error) {
	body := s.body.first
	if s.tries > 0 {
		var err error
		if body, err = s.body.again(); err != nil {
			return nil, &unsendableError{fmt.Errorf("get request body: %w", err)}
		}
	}
	ctx, cancel := context.WithCancelCause(s.r.Context())
	timer := time.AfterFunc(min(s.t.TryTimeout, s.left()), func() { cancel(errNoResponse) })
	resp, err := s.send(ctx, body)
	if err == nil && s.reads(resp) {
		err = hold(resp, s.t.MaxBody)
	}
	inTime := timer.Stop()
	if err != nil {
		return nil, endOf(ctx, cancel, err)
	}
	if _, all := resp.Body.(held); all {
		cancel(nil)
		return resp, nil
	}
	if !inTime {
		_ = resp.Body.Close()
		return nil, endOf(ctx, cancel, errNoResponse)
	}
	resp.Body = lasting{resp.Body, cancel}
	return resp, nil
}

// endOf ends a failed try. What ended it early says more than what Base made of
// that.
func endOf(ctx context.Context, cancel context.CancelCauseFunc, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	cancel(nil)
	return err
}

// reads reports whether resp is to be read before it is returned.
func (s *sending) reads(resp *http.Response) bool {
	short := resp.ContentLength >= 0 && resp.ContentLength <= s.t.MaxBody
	return short || resp.StatusCode >= http.StatusBadRequest && mayAsk(resp.StatusCode, true)
}

// send gives a copy of the request to Base, and finds out whether the server may
// have seen it.
func (s *sending) send(ctx context.Context, body io.ReadCloser) (*http.Response, error) {
	var asked, connected atomic.Bool
	r := s.r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}))
	r.Body, r.GetBody, r.ContentLength = body, s.body.again, s.body.length
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if s.line != "" {
		r.Header.Set(HeaderKey, s.line)
	}
	s.tries++
	resp, err := s.t.Base.RoundTrip(r)
	if err == nil && resp == nil {
		err = errNoBase
	}
	_, traces := s.t.Base.(*http.Transport)
	local := traces && !asked.Load() && err != nil && !network(err)
	s.sent = s.sent || connected.Load() || !asked.Load() && !local
	if local {
		return nil, &unsendableError{err}
	}
	return resp, err
}

// lasting is a body that is read within its try's context, which ends with it.
type lasting struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

func (l lasting) Close() error {
	err := l.ReadCloser.Close()
	l.cancel(nil)
	return err
}
