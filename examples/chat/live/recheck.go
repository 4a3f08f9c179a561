package live

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pendingChecks are the rights that the server must read again, because a right may have ended
// without an event, or while the server was using it.
type pendingChecks struct {
	// changes counts the events that may end rights. A caller that reads a right and then
	// uses it compares the number before and after: if it differs, the event may have come
	// in between, and the right must be read again.
	changes atomic.Int64
	due     chan struct{}

	mu       sync.Mutex         // guards the fields below
	all      bool               // all open sessions
	sessions map[string]int64   // sessions, with their users
	users    map[int64]struct{} // users that may share no group with those that they follow
}

func newPendingChecks() pendingChecks {
	return pendingChecks{due: make(chan struct{}, 1), sessions: make(map[string]int64), users: make(map[int64]struct{})}
}

// add records what must be read again, and wakes the goroutine that does so.
func (r *pendingChecks) add(record func(r *pendingChecks)) {
	r.mu.Lock()
	record(r)
	r.mu.Unlock()
	select {
	case r.due <- struct{}{}:
	default:
	}
}

func (r *pendingChecks) allSessions() { r.add(func(r *pendingChecks) { r.all = true }) }

// attached records a session that was authenticated when changes was before, if there was a
// change since.
func (r *pendingChecks) attached(c Identity, before int64) {
	if r.changes.Load() != before {
		r.add(func(r *pendingChecks) { r.sessions[c.Session] = c.User })
	}
}

// removed records users that were removed from a group. The caller holds mu.
func (r *pendingChecks) removed(users []int64) {
	for _, user := range users {
		r.users[user] = struct{}{}
	}
}

// take returns what is to be read, and forgets it.
func (r *pendingChecks) take() (all bool, sessions map[string]int64, users []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, sessions, users = r.all, r.sessions, slices.Collect(maps.Keys(r.users))
	r.all, r.sessions, r.users = false, make(map[string]int64), make(map[int64]struct{})
	return all, sessions, users
}

const (
	// sessionsPerCheck is how many sessions one call of the application checks.
	sessionsPerCheck = 500
	// recheckDelay is the delay after a failure.
	recheckDelay = time.Second
)

// recheck reads what is due, and all sessions every Options.Check, until ctx ends.
func (s *Server) recheck(ctx context.Context) {
	ticks := time.NewTicker(s.options.Check)
	defer ticks.Stop()
	for {
		select {
		case <-s.checks.due:
		case <-ticks.C:
			s.checks.allSessions()
			continue
		case <-ctx.Done():
			return
		}
		err := s.checkDue(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.options.Log.WarnContext(ctx, "sessions could not be checked, and will be", slog.Any("error", err))
		select {
		case <-time.After(recheckDelay):
		case <-ctx.Done():
		}
	}
}

// checkDue checks what is due. After an error it is due again.
func (s *Server) checkDue(ctx context.Context) (err error) {
	all, sessions, users := s.checks.take()
	if all {
		sessions = s.hub.Sessions()
	}
	defer func() {
		if err != nil {
			s.checks.add(func(r *pendingChecks) {
				maps.Copy(r.sessions, sessions)
				r.removed(users)
			})
		}
	}()
	for part := range slices.Chunk(slices.Collect(maps.Keys(sessions)), sessionsPerCheck) {
		if err := s.checkSessions(ctx, part, sessions); err != nil {
			return err
		}
	}
	for _, user := range users {
		if err := s.checkPresence(ctx, user); err != nil {
			return err
		}
	}
	return nil
}

// checkSessions closes those of the sessions that have ended.
func (s *Server) checkSessions(ctx context.Context, part []string, users map[string]int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	open, err := s.backend.OpenSessions(ctx, part)
	if err != nil {
		return err
	}
	slices.Sort(open)
	for _, id := range part {
		if _, is := slices.BinarySearch(open, id); !is {
			s.hub.Revoke(users[id], id)
		}
	}
	return nil
}

// checkPresence ends the presence subscriptions between the user and all users that share no
// group with the user any more, in both directions.
func (s *Server) checkPresence(ctx context.Context, user int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	others, err := s.backend.CoMembers(ctx, user)
	if err != nil {
		return err
	}
	topics := map[string]bool{presenceTopic(user): true}
	for _, other := range others {
		topics[presenceTopic(other)] = true
	}
	s.hub.Unwatch(user, func(topic string) bool { return topics[topic] })
	s.hub.UnwatchTopic(presenceTopic(user), func(watcher int64) bool { return watcher == user || slices.Contains(others, watcher) })
	return nil
}
