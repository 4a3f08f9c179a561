package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/semelgo/semel/internal/clock"
)

const (
	// streamFor is how long a stream is open. The browser opens a new one, which
	// authenticates again.
	streamFor = 5 * time.Minute
	// streamEvery is the interval of events in a stream.
	streamEvery = 5 * time.Second
)

// view reads the data of a page that has no side effects.
type view func(s *site, r *http.Request) (*page, error)

// liveViews returns the pages whose template "live" is sent as events, by their templates.
func liveViews() map[string]view {
	return map[string]view{"overview": overviewPage, "doubt": doubtPage, "record": recordPage}
}

// show answers with a page, and tells it the address of its events.
func show(name string) func(s *site, w http.ResponseWriter, r *http.Request) error {
	read := liveViews()[name]
	return func(s *site, w http.ResponseWriter, r *http.Request) error {
		p, err := read(s, r)
		if err != nil {
			return err
		}
		query := r.URL.Query()
		query.Set("view", name)
		p.Events = "events?" + query.Encode()
		s.render(w, http.StatusOK, name, p)
		return nil
	}
}

// stream sends the parts of a page that change, as server-sent events.
func stream(s *site, w http.ResponseWriter, r *http.Request) error {
	name := r.FormValue("view")
	read, ok := liveViews()[name]
	if !ok {
		return badRequest("This page has no events.")
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return &statusError{http.StatusServiceUnavailable, "Too many pages are open."}
	}
	out := http.NewResponseController(w)
	ticker, end := time.NewTicker(streamEvery), time.NewTimer(streamFor)
	defer ticker.Stop()
	defer end.Stop()
	for begun := false; ; begun = true {
		text, err := s.event(name, read, r)
		switch {
		case err != nil && !begun:
			return err
		case err != nil: // the next reading may succeed
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Accel-Buffering", "no")
			_ = out.SetWriteDeadline(clock.Now().Add(2 * streamEvery)) // a server without deadlines needs none
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return nil // the browser has closed the stream
			}
			if err := out.Flush(); err != nil {
				return nil
			}
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-end.C:
			return nil
		case <-ticker.C:
		}
	}
}

// event returns the live part of a page as JSON, which has no line breaks.
func (s *site) event(name string, read view, r *http.Request) ([]byte, error) {
	p, err := read(s, r)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&text, "live", p); err != nil {
		return nil, err
	}
	return json.Marshal(text.String())
}
