package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// run connects again and again until ctx ends or the client is finished.
func (c *device) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		done, err := c.connected(ctx)
		if done {
			close(c.finished)
			return
		}
		if failures++; err == nil {
			failures = 0
		}
		c.mu.Lock()
		c.reconnects++
		if err != nil {
			c.last = err
		}
		after := c.reconnect
		c.reconnect = 0
		c.mu.Unlock()
		pause(ctx, after+time.Duration(float64(50*time.Millisecond)*rand.Float64()*float64(int(1)<<min(failures, 6))))
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
	c.renewAll()
	ping := time.NewTicker(conn.heartbeat)
	defer ping.Stop()
	for {
		done, err := c.work(ctx, conn)
		if done || err != nil {
			return done, ignoreDrop(ctx, err)
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-conn.ended:
			return false, errLost
		case <-ping.C:
			if err := conn.request(ctx, "ping", nil, ignored); err != nil {
				return false, ignoreDrop(ctx, err)
			}
		case <-c.wake:
		}
	}
}

// ignoreDrop returns no error for a connection that the client itself dropped.
func ignoreDrop(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}
