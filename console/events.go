package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/recordview"
)

const (
	// maxStreams limits the open streams of events. Other browsers show the counts
	// when they load the page again.
	maxStreams = 100
	// streamFor is how long a stream is open. The browser opens a new one, which
	// authenticates again.
	streamFor = 5 * time.Minute
	// streamEvery is the interval of counts in a stream.
	streamEvery = 5 * time.Second
)

// counterEvent are the counters that a page replaces.
type counterEvent struct {
	Doubt   string `json:"doubt"`
	Failed  string `json:"failed"`
	Waiting string `json:"waiting"`
	Expired string `json:"expired"`
	Age     string `json:"age"`
}

// streamCounts sends the counters as server-sent events.
func streamCounts(s *site, w http.ResponseWriter, r *http.Request) error {
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return &statusError{http.StatusServiceUnavailable, "Too many pages are open."}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	ticker, end := time.NewTicker(streamEvery), time.NewTimer(streamFor)
	defer ticker.Stop()
	defer end.Stop()
	for {
		text, err := json.Marshal(liveOf(overviewOf(e.counts.get(r.Context(), countWait))))
		if err != nil {
			return err
		}
		_ = out.SetWriteDeadline(clock.Now().Add(2 * streamEvery)) // a server without deadlines needs none
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return nil // the browser has closed the stream
		}
		if err := out.Flush(); err != nil {
			return nil
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

// liveOf returns the counters of an overview.
func liveOf(v *overview) counterEvent {
	if !v.Known {
		return counterEvent{}
	}
	return counterEvent{number(v.Doubt.Records), number(v.Failures.Records), number(v.Waiting.Records), number(v.Expired.Records), recordview.Ago(v.Age) + " ago"}
}
