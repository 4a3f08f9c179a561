package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

var (
	errNoResponse = errors.New("no response in time")
	errNoBase     = errors.New("Transport.Base returned neither a response nor an error")
)

// try sends the request once more. A response that is short, or may be retried, is
// read before it is accepted.
func (s *clientCall) try() (*http.Response, error) {
	body := s.again.Body
	if s.tries > 0 {
		var err error
		if body, err = s.again.GetBody(); err != nil {
			s.hopeless = true
			return nil, fmt.Errorf("get request body: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(s.r.Context())
	timer := time.AfterFunc(min(s.t.TryTimeout, s.left()), func() { cancel(errNoResponse) })
	resp, err := s.send(ctx, body)
	whole := false
	if err == nil && s.reads(resp) {
		whole, err = hold(resp, s.t.MaxBody)
	}
	switch inTime := timer.Stop(); {
	case err != nil:
	case whole:
		cancel(nil)
		return resp, nil
	case inTime:
		resp.Body = tryBody{resp.Body, cancel}
		return resp, nil
	default:
		_ = resp.Body.Close()
		err = errNoResponse
	}
	// The reason for which the try was ended is better than what Base made of it.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	cancel(nil)
	return nil, err
}

// reads reports whether resp is read before it is returned.
func (s *clientCall) reads(resp *http.Response) bool {
	short := resp.ContentLength >= 0 && resp.ContentLength <= s.t.MaxBody
	return short || isTemporary(resp.StatusCode) || needsInvitation(resp.StatusCode)
}

// send gives a copy of the request to Base, and finds out whether the server may
// have received it.
func (s *clientCall) send(ctx context.Context, body io.ReadCloser) (*http.Response, error) {
	var asked, connected atomic.Bool
	ctx = context.WithValue(ctx, triesName{}, s.tries+1)
	r := s.again.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}))
	r.Body = body
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if s.line != "" {
		r.Header.Set(s.t.Header, s.line)
	}
	s.tries++
	if ctx.Err() != nil { // Base may not report that it noticed in time
		closeBody(r)
		return nil, context.Cause(ctx)
	}
	resp, err := s.t.Base.RoundTrip(r)
	if err == nil && resp == nil {
		err = errNoBase
	}
	_, traces := s.t.Base.(*http.Transport)
	s.hopeless = traces && !asked.Load() && !connected.Load() && refusesToSend(err)
	s.sent = s.sent || connected.Load() || !asked.Load() && !s.hopeless
	return resp, err
}

// refusesToSend reports whether err is one of those that http.Transport returns
// before it does anything. They have no names. A protocol that is registered with
// http.Transport asks for no connection either, and its errors do not say what was
// sent.
func refusesToSend(err error) bool {
	texts := []string{
		"http: nil Request.URL", "http: no Host in request URL", "unsupported protocol scheme",
		"net/http: invalid header", "net/http: invalid trailer", "net/http: invalid method",
	}
	return err != nil && slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(err.Error(), text) })
}

// tryBody is a response body that is read within the context of its try, which ends
// with it.
type tryBody struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

func (l tryBody) Close() error {
	err := l.ReadCloser.Close()
	l.cancel(nil)
	return err
}
