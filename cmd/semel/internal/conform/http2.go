package conform

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
)

// http2 sends all requests at the same time over one HTTP/2 connection, and
// returns the answers; false if the server does not speak HTTP/2.
func (t *caseRun) http2(requests ...request) ([]*answer, bool) {
	var protocols http.Protocols
	protocols.SetHTTP2(t.server.base.Scheme == "https")
	protocols.SetUnencryptedHTTP2(t.server.base.Scheme == "http")
	transport := &http.Transport{Protocols: &protocols, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if !t.speaksHTTP2(transport) {
		return nil, false
	}
	replies := make(chan reply)
	for _, a := range requests {
		m := t.message(a)
		go func() {
			got, err := t.sendOver(transport, m)
			if err == nil {
				t.record(a.op, m, got)
			}
			replies <- reply{got, err}
		}()
	}
	var all []*answer
	var failed error
	for range requests {
		r := <-replies
		all, failed = append(all, r.got), firstError(failed, r.err)
	}
	if failed != nil {
		t.failf("over HTTP/2: %v", failed)
	}
	return all, true
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *caseRun) speaksHTTP2(transport *http.Transport) bool {
	_, err := t.sendOver(transport, message{method: http.MethodGet, path: "/"})
	return err == nil
}

// sendOver sends m with net/http, which writes header names in lower case.
func (t *caseRun) sendOver(transport *http.Transport, m message) (*answer, error) {
	target, err := url.Parse(t.server.base.String() + m.path)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(t.ctx, m.method, target.String(), bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	for _, l := range m.lines {
		r.Header.Add(l.name, l.value)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}
