package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
)

// stream is a client of server-sent events. The handler's goroutine writes.
type stream struct {
	frames chan []*hub.Frame
	closed chan []*hub.Frame
	// answer is that of the present subscription; answered says that it was written.
	answer   atomic.Pointer[hub.Frame]
	answered chan struct{}
}

// Write implements hub.Transport. The hub does not write again before Written.
func (s *stream) Write(frames []*hub.Frame) bool {
	s.frames <- slices.Clone(frames)
	return false
}

// Close implements hub.Transport.
func (s *stream) Close(_ int, _ string, last []*hub.Frame) {
	select {
	case s.closed <- last:
	default: // closed before
	}
}

// Events serves `/v1/events`. Each parameter group=ID:AFTER subscribes to a group
// after a change. The stream begins with a push "hello" and one push "subscribed"
// for each group.
func (s *Server) Events(w http.ResponseWriter, r *http.Request) {
	before := s.checks.changes.Load()
	caller, failed := s.authenticate(r.Context(), credentialsOf(r))
	if failed != nil {
		status := http.StatusUnauthorized
		if failed.Temporary {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, failed.Message, status)
		return
	}
	groups := r.URL.Query()["group"]
	if len(groups) > s.options.MaxEventGroups {
		http.Error(w, fmt.Sprintf("a stream has at most %d groups", s.options.MaxEventGroups), http.StatusBadRequest)
		return
	}
	first := s.welcome(caller)
	first.Push = "hello"
	t := &stream{frames: make(chan []*hub.Frame, 1), closed: make(chan []*hub.Frame, 1), answered: make(chan struct{}, 1)}
	session := s.hub.NewSession(caller.User, caller.Session, t)
	err := s.hub.Attach(session, hub.FrameOf(first))
	if errors.Is(err, hub.ErrTooMany) {
		w.Header().Set("Retry-After", strconv.FormatInt(errTooManyStreams.RetryAfter/time.Second.Milliseconds(), 10))
		http.Error(w, errTooManyStreams.Message, http.StatusTooManyRequests)
		return
	}
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the server restarts", http.StatusServiceUnavailable)
		return
	}
	defer session.Detach()
	s.checks.attached(caller, before)
	session.Exempt()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	go s.subscribeStream(r.Context(), session, t, caller, groups)
	_ = s.writeStream(w, r, session, t)
}

// subscribed is the answer of a subscription of a stream.
type subscribed struct {
	Push  string `json:"push"`
	Group string `json:"group"`
	*CatchUp
	Error *Error `json:"err,omitempty"`
}

// subscribeStream subscribes while the handler writes. It reads what the client has missed of a
// group after the answer for the group before was written, so one answer waits at a time.
func (s *Server) subscribeStream(ctx context.Context, session *hub.Session, t *stream, caller Identity, groups []string) {
	for _, value := range groups {
		i := strings.LastIndexByte(value, ':')
		group := value[:max(i, 0)]
		after, err := strconv.ParseInt(value[i+1:], 10, 64)
		if err != nil || group == "" {
			group, after = value, 0
		}
		if s.pace(ctx, caller) != nil {
			return
		}
		topic := bus.GroupTopic(group)
		session.Subscribe(topic)
		var missed CatchUp
		if err = checkGroup(group); err == nil {
			missed, err = s.backend.CatchUp(ctx, caller, group, after)
		}
		answer := subscribed{Push: "subscribed", Group: group}
		if err != nil {
			session.Unsubscribe(topic)
			if answer.Error = s.errorOf("subscribe", err); answer.Error.Code == Unauthenticated {
				s.hub.Revoke(caller.User, caller.Session)
				return
			}
		} else {
			answer.CatchUp = &missed
		}
		f := hub.FrameOf(answer)
		t.answer.Store(f)
		if err != nil {
			session.Send(f)
		} else {
			session.Recovered(topic, missed.Change, f)
		}
		select {
		case <-t.answered:
		case <-ctx.Done():
			return
		}
	}
}

// pace waits until the user may send another frame. A subscription of a stream counts as one.
func (s *Server) pace(ctx context.Context, caller Identity) error {
	for {
		wait, ok := s.frames.Allow(caller.key(), time.Now())
		if ok {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errClosed = errors.New("the hub has closed the session")

// writeStream writes until the hub or the client closes the stream.
func (s *Server) writeStream(w http.ResponseWriter, r *http.Request, session *hub.Session, t *stream) error {
	out := http.NewResponseController(w)
	beats := time.NewTicker(s.options.Heartbeat)
	defer beats.Stop()
	for {
		var text []byte
		var frames []*hub.Frame
		var closed bool
		select {
		case frames = <-t.frames:
		case frames = <-t.closed:
			closed = true
		case <-beats.C:
			text = []byte(":\n\n")
		case <-r.Context().Done():
			return r.Context().Err()
		}
		for _, f := range frames {
			text = append(append(append(text, "data: "...), f.JSON()...), "\n\n"...)
		}
		if err := out.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout)); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if closed {
			return errClosed
		}
		if answer := t.answer.Load(); answer != nil && slices.Contains(frames, answer) {
			t.answer.Store(nil)
			t.answered <- struct{}{}
		}
		if frames != nil {
			session.Written()
		}
	}
}
