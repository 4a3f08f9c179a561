package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// device is one client: it sends its messages until they are acknowledged, follows its
// groups, drops its connection from time to time, and repairs its view.
type device struct {
	on      *run
	account *account

	mu         sync.Mutex
	unsent     []*sending // in order, without an acknowledgement
	views      map[string]*view
	fetch      map[string]bool // groups with a gap, to be read
	renew      map[string]bool // groups to subscribe to again
	latencies  []time.Duration
	reconnects int
	reconnect  time.Duration // the server wants the client to wait so long
	last       error
	closing    bool             // no further message is submitted: close sent
	target     map[string]int64 // the change that each view must reach; nil: not known yet

	wake     chan struct{}
	sent     chan struct{} // closed when nothing is unsent, after sending has ended
	finished chan struct{} // closed when each view has reached its target
}

// sending is a message on its way.
type sending struct{ group, key, text string }

func newDevice(r *run, a *account) *device {
	c := &device{
		on: r, account: a, views: map[string]*view{}, fetch: map[string]bool{}, renew: map[string]bool{},
		wake: make(chan struct{}, 1), sent: make(chan struct{}), finished: make(chan struct{}),
	}
	for _, group := range a.groups {
		c.views[group] = &view{messages: map[int64]string{}}
	}
	return c
}

// submit queues a message. Its text names the message and when it was submitted.
func (c *device) submit(group string, number int) {
	text := fmt.Sprintf("load %d %d", number, time.Now().UnixNano())
	c.mu.Lock()
	c.unsent = append(c.unsent, &sending{group: group, key: fmt.Sprintf("load-%d-%s", number, c.account.name), text: text})
	c.mu.Unlock()
	c.signal()
}

func (c *device) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// allSent waits until all messages are acknowledged. No further one may be submitted.
func (c *device) allSent(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.signal()
	return c.wait(ctx, c.sent)
}

// finish waits until each view has reached its target, without reading it: by pushes, and by
// what the server's protocol says after a lost connection, a gap or a resync.
func (c *device) finish(ctx context.Context, target map[string]int64) error {
	c.mu.Lock()
	c.target = target
	c.mu.Unlock()
	c.signal()
	return c.wait(ctx, c.finished)
}

func (c *device) wait(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-event:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var behind strings.Builder
	for group, v := range c.views {
		if v.known < c.target[group] {
			fmt.Fprintf(&behind, "; the view of group %s is at change %d of %d", group, v.known, c.target[group])
		}
	}
	return fmt.Errorf("%w: a client has %d messages without an acknowledgement%s; its last error: %w", ctx.Err(), len(c.unsent), behind.String(), c.last)
}

// work subscribes, fills gaps and sends what is not acknowledged, until nothing is left to
// do. It reports true when the client is finished.
func (c *device) work(ctx context.Context, conn *connection) (bool, error) {
	for {
		group, next, finished := c.next()
		var err error
		switch {
		case finished:
			return true, nil
		case group.renew != "":
			if err = c.subscribe(ctx, conn, group.renew); err != nil {
				c.missing(c.renew, group.renew)
			}
		case group.fetch != "":
			if err = c.catchUp(ctx, group.fetch); err != nil {
				c.missing(c.fetch, group.fetch)
			}
		case next != nil:
			err = c.sendOne(ctx, conn, next)
		default:
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// next takes the next thing to do: a group to subscribe to, a group to fetch, or a message to
// send. finished says that there will be no more.
func (c *device) next() (group struct{ renew, fetch string }, unsent *sending, finished bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unsent) > 0 {
		unsent = c.unsent[0]
	} else if c.closing {
		c.closing = false
		close(c.sent)
	}
	finished = c.target != nil
	for id, v := range c.views {
		finished = finished && v.known >= c.target[id]
	}
	if finished {
		return group, nil, true
	}
	for id := range c.renew {
		delete(c.renew, id)
		group.renew = id
		return group, unsent, false
	}
	for id := range c.fetch {
		delete(c.fetch, id)
		group.fetch = id
		break
	}
	return group, unsent, false
}

// sendOne sends the first message of the queue. After an error it stays there, and is sent
// again with the same key.
func (c *device) sendOne(ctx context.Context, conn *connection, s *sending) error {
	err := conn.request(ctx, "send", map[string]any{"group": s.group, "key": s.key, "text": s.text}, ignored)
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.Temporary {
		c.mu.Lock()
		c.last = err
		c.mu.Unlock()
		pause(ctx, 100*time.Millisecond)
		return nil
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.unsent = c.unsent[1:]
	c.mu.Unlock()
	c.on.acknowledged.Add(1)
	return nil
}

// subscribe takes over what the view of a group lacks before later changes are pushed.
func (c *device) subscribe(ctx context.Context, conn *connection, group string) error {
	return conn.request(ctx, "subscribe", map[string]any{"group": group, "after": c.known(group)}, func(ok json.RawMessage) error {
		var out struct {
			Recovered bool `json:"recovered"`
			page
		}
		if err := json.Unmarshal(ok, &out); err != nil {
			return err
		}
		if out.Recovered {
			c.merge(group, out.page)
		} else {
			c.missing(c.fetch, group) // too many
		}
		return nil
	})
}

func (c *device) known(group string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[group].known
}

// catchUp fetches the changes that the view of a group lacks.
func (c *device) catchUp(ctx context.Context, group string) error {
	for {
		p, err := c.on.api.changes(ctx, c.account, group, c.known(group))
		if err != nil {
			return err
		}
		more := len(p.Messages) == pageSize
		if more {
			p.Change = p.Messages[len(p.Messages)-1].Change
		}
		if c.merge(group, p); !more {
			return nil
		}
	}
}

// merge adds a page of changes to the view of a group.
func (c *device) merge(group string, p page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[group]
	for _, m := range p.Messages {
		v.put(m)
	}
	v.known = max(v.known, p.Change)
}

// missing notes that a group is to be fetched, or to be subscribed to again.
func (c *device) missing(what map[string]bool, group string) {
	c.mu.Lock()
	what[group] = true
	c.mu.Unlock()
	c.signal()
}

// renewAll notes that all groups are to be subscribed to again.
func (c *device) renewAll() {
	for group := range c.views {
		c.missing(c.renew, group)
	}
}

// pushed handles a frame that the server pushed.
func (c *device) pushed(p push) {
	switch p.Push {
	case "message", "group", "gap":
		if c.views[p.Group] != nil {
			c.apply(p)
		}
	case "resync":
		// All clients of the server are told so, and must not come back at once.
		time.AfterFunc(time.Duration(rand.Int64N(p.Within+1))*time.Millisecond, c.renewAll)
	case "bye":
		c.mu.Lock()
		c.reconnect = time.Duration(p.After) * time.Millisecond
		c.mu.Unlock()
	}
}

// apply applies a change to a view.
func (c *device) apply(p push) {
	now := time.Now()
	c.mu.Lock()
	v := c.views[p.Group]
	fresh := p.Change > v.known
	complete := v.apply(p)
	if at, ok := submitted(p.Message.Text); ok && fresh {
		c.latencies = append(c.latencies, now.Sub(at))
		c.on.delivered.Add(1)
	}
	finishing := c.target != nil
	c.mu.Unlock()
	switch {
	case !complete:
		c.missing(c.fetch, p.Group)
	case finishing:
		c.signal()
	}
}

// submitted returns when a message of this package was submitted.
func submitted(text string) (time.Time, bool) {
	fields := strings.Fields(text)
	if len(fields) != 3 || fields[0] != "load" {
		return time.Time{}, false
	}
	nanoseconds, err := strconv.ParseInt(fields[2], 10, 64)
	return time.Unix(0, nanoseconds), err == nil
}
