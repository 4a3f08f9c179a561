package load

import (
	"context"
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
	resync     map[string]bool // groups with a gap
	latencies  []time.Duration
	reconnects int
	last       error
	finishing  bool // no more messages: bring every view up to date, then close finished

	wake     chan struct{}
	finished chan struct{}
}

// sending is a message on its way.
type sending struct{ group, key, text string }

func newDevice(r *run, a *account) *device {
	c := &device{
		on: r, account: a, views: map[string]*view{}, resync: map[string]bool{},
		wake: make(chan struct{}, 1), finished: make(chan struct{}),
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

// finish waits until all messages are acknowledged and all views are up to date.
func (c *device) finish(ctx context.Context) error {
	c.mu.Lock()
	c.finishing = true
	c.mu.Unlock()
	c.signal()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.finished:
		return nil
	}
}

func (c *device) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// run connects again and again until ctx ends or the client is finished.
func (c *device) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		done, err := c.connected(ctx)
		if done {
			close(c.finished)
			return
		}
		c.mu.Lock()
		c.reconnects++
		if err != nil {
			c.last = err
		}
		c.mu.Unlock()
		if failures++; err == nil {
			failures = 0
		}
		pause(ctx, time.Duration(float64(50*time.Millisecond)*rand.Float64()*float64(int(1)<<min(failures, 6))))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// connected is the life of one connection. It reports true when the client is finished.
func (c *device) connected(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.on.Drop > 0 {
		timer := time.AfterFunc(time.Duration(rand.ExpFloat64()*float64(c.on.Drop)), cancel)
		defer timer.Stop()
	}
	conn, err := dial(ctx, c.on.api.server(), c.account.token, c.pushed)
	if err != nil {
		return false, ignoreDrop(ctx, err)
	}
	defer conn.drop()
	for group := range c.views {
		if err := c.subscribe(ctx, conn, group); err != nil {
			return false, ignoreDrop(ctx, err)
		}
	}
	for {
		done, err := c.work(ctx, conn)
		if done || err != nil {
			return done, ignoreDrop(ctx, err)
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-c.wake:
		}
	}
}

// ignoreDrop returns no error for a connection that the client itself dropped.
func ignoreDrop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// work fills gaps and sends what is not acknowledged. It reports true when the client
// is finished.
func (c *device) work(ctx context.Context, conn *connection) (bool, error) {
	for {
		c.mu.Lock()
		var next *sending
		var gap string
		finishing := c.finishing
		for group := range c.resync {
			gap = group
		}
		delete(c.resync, gap)
		if len(c.unsent) > 0 {
			next = c.unsent[0]
		}
		c.mu.Unlock()
		switch {
		case gap != "":
			if err := c.catchUp(ctx, gap); err != nil {
				c.missing(gap)
				return false, err
			}
		case next != nil:
			if err := c.sendOne(ctx, conn, next); err != nil {
				return false, err
			}
		case finishing:
			// A push may have been lost without a later one that shows the gap.
			for group := range c.views {
				if err := c.catchUp(ctx, group); err != nil {
					return false, err
				}
			}
			return true, nil
		default:
			return false, nil
		}
	}
}

// sendOne sends the first message of the queue. After an error it stays there, and is sent
// again with the same key.
func (c *device) sendOne(ctx context.Context, conn *connection, s *sending) error {
	err := conn.request(ctx, "send", map[string]any{"group": s.group, "key": s.key, "text": s.text}, nil)
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.Temporary {
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

func (c *device) subscribe(ctx context.Context, conn *connection, group string) error {
	var out struct {
		Recovered bool `json:"recovered"`
		page
	}
	if err := conn.request(ctx, "subscribe", map[string]any{"group": group, "after": c.known(group)}, &out); err != nil {
		return err
	}
	if !out.Recovered {
		return c.catchUp(ctx, group)
	}
	c.merge(group, out.page)
	return nil
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
		if more := len(p.Messages) == pageSize; more {
			p.Change = p.Messages[len(p.Messages)-1].Change
			c.merge(group, p)
			continue
		}
		c.merge(group, p)
		return nil
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

// missing notes that the view of a group has a gap.
func (c *device) missing(group string) {
	c.mu.Lock()
	c.resync[group] = true
	c.mu.Unlock()
	c.signal()
}

// pushed applies a frame that the server pushed.
func (c *device) pushed(p push) {
	if p.Push != "message" && p.Push != "group" {
		return
	}
	now := time.Now()
	c.mu.Lock()
	v := c.views[p.Group]
	complete, fresh := true, false
	if v != nil {
		fresh = p.Change > v.known
		complete = v.apply(p)
	}
	if at, ok := submitted(p.Message.Text); ok && fresh {
		c.latencies = append(c.latencies, now.Sub(at))
		c.on.delivered.Add(1)
	}
	c.mu.Unlock()
	if !complete {
		c.missing(p.Group)
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
