package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
)

// presence knows which users are online on any server. Each server publishes its
// users when they change, and all of them at each renewal. A user is offline when
// no server's lease on the user is valid; so a dead server's users go offline
// within a lease.
type presence struct {
	server  string
	lease   time.Duration
	push    func(onlineStatus)
	changes chan leases // to publish; a lost one is repaired by the next renewal

	mu    sync.Mutex
	local map[int64]struct{}
	other map[int64]map[string]time.Time // user, server: end of the lease
	seen  map[int64]time.Time            // when the user went offline
}

// leases is an event between servers: users that a server has online, or no
// longer.
type leases struct {
	Server string  `json:"server"`
	Users  []int64 `json:"users"`
	Online bool    `json:"online"`
}

// onlineStatus is the presence of a user, as clients receive it. The time is
// missing while the user is online, and if this server does not know the time.
type onlineStatus struct {
	Push     string     `json:"push,omitempty"`
	User     int64      `json:"user"`
	Online   bool       `json:"online"`
	LastSeen *time.Time `json:"last_seen,omitempty"`
}

const (
	leasesPerEvent = 500
	keepSeen       = 24 * time.Hour
)

func newPresence(server string, lease time.Duration, push func(onlineStatus)) *presence {
	return &presence{
		server: server, lease: lease, push: push, changes: make(chan leases, 1024),
		local: make(map[int64]struct{}), other: make(map[int64]map[string]time.Time), seen: make(map[int64]time.Time),
	}
}

func presenceTopic(user int64) string { return fmt.Sprint("presence:", user) }

func (s *Server) pushPresence(status onlineStatus) {
	status.Push = "presence"
	s.hub.Publish(hub.Event{Topic: presenceTopic(status.User), Frame: hub.FrameOf(status), Volatile: true})
}

// setLocal is called by the hub, and does not block.
func (p *presence) setLocal(user int64, online bool) {
	p.update([]int64{user}, func(user int64) {
		if online {
			p.local[user] = struct{}{}
		} else {
			delete(p.local, user)
		}
	})
	select {
	case p.changes <- leases{p.server, []int64{user}, online}:
	default:
	}
}

// merge handles an event of another server.
func (p *presence) merge(payload []byte) {
	var l leases
	if json.Unmarshal(payload, &l) != nil || l.Server == p.server {
		return
	}
	until := time.Now().Add(p.lease)
	p.update(l.Users, func(user int64) {
		if !l.Online {
			delete(p.other[user], l.Server)
			return
		}
		if p.other[user] == nil {
			p.other[user] = make(map[string]time.Time)
		}
		p.other[user][l.Server] = until
	})
}

// expire ends leases.
func (p *presence) expire(now time.Time) {
	p.mu.Lock()
	users := slices.Collect(maps.Keys(p.other))
	maps.DeleteFunc(p.seen, func(_ int64, at time.Time) bool { return now.Sub(at) > keepSeen })
	p.mu.Unlock()
	p.update(users, func(user int64) {
		maps.DeleteFunc(p.other[user], func(_ string, until time.Time) bool { return !now.Before(until) })
	})
}

// update changes the state of users, and pushes what has changed for clients.
func (p *presence) update(users []int64, change func(user int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, user := range users {
		before := p.online(user)
		change(user)
		if len(p.other[user]) == 0 {
			delete(p.other, user)
		}
		if p.online(user) == before {
			continue
		}
		if before {
			p.seen[user] = time.Now()
		} else {
			delete(p.seen, user)
		}
		p.push(p.status(user))
	}
}

func (p *presence) online(user int64) bool {
	_, here := p.local[user]
	return here || len(p.other[user]) > 0
}

func (p *presence) status(user int64) onlineStatus {
	status := onlineStatus{User: user, Online: p.online(user)}
	if at, ok := p.seen[user]; ok {
		status.LastSeen = &at
	}
	return status
}

// of returns the present state of users.
func (p *presence) of(users []int64) []onlineStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]onlineStatus, 0, len(users))
	for _, user := range users {
		all = append(all, p.status(user))
	}
	return all
}

// run publishes changes and renewals, until ctx ends.
func (p *presence) run(ctx context.Context, b bus.Publisher) error {
	renewals := time.NewTicker(p.lease / 3)
	defer renewals.Stop()
	for {
		select {
		case l := <-p.changes:
			p.publish(ctx, b, l)
		case now := <-renewals.C:
			p.expire(now)
			p.mu.Lock()
			users := slices.Collect(maps.Keys(p.local))
			p.mu.Unlock()
			for part := range slices.Chunk(users, leasesPerEvent) {
				p.publish(ctx, b, leases{p.server, part, true})
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// publish ignores errors: the next renewal repeats the state.
func (p *presence) publish(ctx context.Context, b bus.Publisher, l leases) {
	payload, err := json.Marshal(l)
	if err == nil {
		_ = b.Publish(ctx, bus.Event{Type: bus.Presence, Payload: payload})
	}
}
