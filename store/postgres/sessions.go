package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessions are the store's own connections, beside the pool's. Settings for
// planning and lock waits, which a round trip over the pool sends before its
// statements, are made once for each session; they are a fifth of the cost of a
// small batch. And records are written while handlers use the whole pool.
//
// Sessions are opened in the background when there is enough work, and closed soon
// after that. Meanwhile callers use the pool. So no caller waits for a session, and
// none must close one.
type sessions struct {
	// config is the pool's; nil: a connection of the pool may be something that one
	// of ours would not be.
	config *pgxpool.Config
	most   int
	pool   *pgxpool.Pool
	// idleFor is how long a session is kept for the next call.
	idleFor time.Duration

	mu     sync.Mutex
	idle   []*session // the most recently used is the last
	open   int        // there are, or will be
	wanted int        // how often there was none lately
	since  time.Time  // from when on wanted counts
	shut   time.Time  // until when none is opened, because that failed
	ended  bool       // the pool gives no connection any more
	timer  *time.Timer
}

const (
	// manyWanted within wantedWithin is so much that a session pays.
	manyWanted   = 16
	wantedWithin = time.Second
	// idleAtMost is what idleFor is: as long as pgx trusts an idle connection without
	// asking whether it is there still.
	idleAtMost = time.Second
	// openWithin bounds the opening, and shutFor is how long after one that failed
	// there is no other.
	openWithin = 10 * time.Second
	shutFor    = 30 * time.Second
)

// sessionsOf are for a store of the pool. Where something happens to a connection of
// the pool each time that it is handed out, or when it is closed, there are none, and
// none behind what pgx must not prepare statements on.
func sessionsOf(pool *pgxpool.Pool, config *pgxpool.Config, most int) *sessions {
	if !isUnhooked(config) || config.BeforeClose != nil || most < 0 {
		return &sessions{}
	}
	return &sessions{config: config, most: most, pool: pool, idleFor: idleAtMost}
}

// unopened tells how many connections the pool may open yet.
func (p *sessions) unopened() int64 {
	stat := p.pool.Stat()
	return int64(stat.MaxConns() - stat.TotalConns())
}

// outlived says that the pool gives no connection: it was closed, or the server is not
// to be had. A pool that has some is not asked, because it may be busy.
func (p *sessions) closeUnused(ctx context.Context) bool {
	if p.pool.Stat().TotalConns() > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	conn, err := p.pool.Acquire(ctx)
	if err == nil {
		conn.Release()
	}
	return err != nil
}

// untouched says that nothing happens to a connection of the pool while it is handed
// out and back, and that pgx prepares statements on it.
func isUnhooked(config *pgxpool.Config) bool {
	handled := config.PrepareConn != nil || config.AfterRelease != nil ||
		config.BeforeAcquire != nil //nolint:staticcheck // a pool may have it all the same
	return !handled && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// take returns a free session, or nil.
func (p *sessions) take(ctx context.Context) *session {
	if p.config == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		s := p.idle[last]
		p.idle = p.idle[:last]
		return s
	}
	if p.isWorthIt() {
		p.open++
		go p.add(context.WithoutCancel(ctx))
	}
	return nil
}

// pays says whether to open one more session, now that there is none.
func (p *sessions) isWorthIt() bool {
	now := time.Now() //nolint:forbidigo // no instant of the protocol's
	if p.open >= p.most || now.Before(p.shut) {
		return false
	}
	if now.Sub(p.since) > wantedWithin {
		p.wanted, p.since = 0, now
	}
	if p.wanted++; p.wanted < manyWanted {
		return false
	}
	p.wanted = 0
	return true
}

// add opens a session for later callers.
func (p *sessions) add(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	if !p.closeUnused(ctx) {
		if s, err := openSession(ctx, p.config, p.unopened); err == nil {
			p.revive()
			p.give(s)
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.shut = time.Now().Add(shutFor) //nolint:forbidigo // no instant of the protocol's
}

// revive lets sessions be used again.
func (p *sessions) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = false
}

// give gives a session back, for the next one unless it is of no use any more. What
// has ended it has most likely ended the others too, unless its user has.
func (p *sessions) give(s *session) {
	useless := !s.usable()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.left, p.ended:
		p.open--
		go s.close()
		return
	case useless:
		p.idle = append(p.idle, s)
		p.closeBefore(time.Now()) //nolint:forbidigo // no instant of the protocol's
		return
	}
	s.used = time.Now() //nolint:forbidigo // no instant of the protocol's
	if s.isOld(s.used) {
		p.open--
		go s.close()
		return
	}
	p.idle = append(p.idle, s)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.idleFor, p.sweep)
	}
}

// sweep closes sessions that were unused for a while, and all sessions after the
// pool was closed.
func (p *sessions) sweep() {
	ended := p.closeUnused(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now() //nolint:forbidigo // no instant of the protocol's
	if ended {
		p.ended, p.shut = true, now.Add(shutFor)
		p.closeBefore(now)
	}
	p.closeBefore(now.Add(-p.idleFor))
	if p.timer = nil; p.open > 0 {
		p.timer = time.AfterFunc(p.idleFor, p.sweep)
	}
}

// closeBefore closes the sessions that were not used since then.
func (p *sessions) closeBefore(then time.Time) {
	kept := p.idle[:0]
	for _, s := range p.idle {
		if s.used.After(then) {
			kept = append(kept, s)
			continue
		}
		p.open--
		go s.close()
	}
	clear(p.idle[len(kept):])
	p.idle = kept
}
