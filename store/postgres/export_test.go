package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/store"
)

// SetCommitBound changes how long s waits for the end of a transaction.
func (s *Store) SetCommitBound(d time.Duration) { s.commitBound = d }

// SetStatementBound changes how long s waits for the statements of a batch, besides
// its commit.
func (s *Store) SetStatementBound(d time.Duration) { s.statementBound = d }

// LongestWait is how long a Swap waits for transactions that hold its records: once for the
// batch, and then for each record alone.
const LongestWait = busyAfter + manyBusy*busyAfterAlone

// Query is one statement with what goes before it.
type Query struct {
	Name, Before, Text string
	Args               []any
}

// Queries are the statements that look for records, as the store sends them.
func Queries(s *Store) []Query {
	change := store.Change{To: store.Record{ID: store.ID{1}, Token: store.Token{State: store.Pending, Attempt: 1, Owner: 1}}}
	made, beaten := change, change
	made.If = store.Token{State: store.InProgress, Attempt: 1, Owner: 1}
	beaten.If = beaten.To.Token
	id, t := uuid(store.ID{1}), newTables("public", sqlname.DefaultPrefix)
	keyed, listed := s.texts.keyed.before[0], s.texts.listed.before[0]
	many, list := uuids(make([]store.ID, 1000)), []any{[]byte("test"), int64(100), int64(0)}
	all := []Query{
		{"look", s.texts.lent.made, sqlLook, []any{id}},
		{"get many", keyed, sqlGetMany, []any{many}},
		{"get confirmed", keyed, sqlGetConfirmed, []any{many, make([]int64, 1000)}},
		{"scan", keyed, sqlScan, append(list, id)},
		{"scan succeeded", keyed, sqlScanSucceeded, append(list, id)},
		{"scan rare", keyed, sqlScanInDoubt, append(list, id)},
		{"scan rare", keyed, sqlScanFailed, append(list, id)},
		{"scan pending", listed, sqlScanPending, append(list, id)},
		{"scan in progress", listed, sqlScanInProgress, append(list, id)},
		{"scan due", listed, sqlScanDue, list},
		{"scan due waits", listed, sqlScanWaits, list},
		{"scan due leases", listed, sqlScanLeases, list},
		{"dequeue", keyed, sqlDequeue, []any{[]byte("test"), int64(100), int64(1), int64(1), true}},
		{"dequeue again", keyed, sqlClaimed, []any{int64(1), []byte("test"), true}},
		{"purge", keyed, sqlPurge, []any{int64(500)}},
		{"notes", keyed, sqlNotes, []any{id}},
	}
	session := `SELECT ` + set(sessionSettings()[:len(sessionSettings())-2])
	all = append(all, Query{"get many in a session", session, sqlGetMany, []any{many}},
		Query{"dequeue in a session", session, sqlDequeue, []any{[]byte("test"), int64(100), int64(1), int64(1), true}})
	for _, c := range []store.Change{change, made, beaten} {
		k, args := statement(&c)
		items := make([]*swapItem, 1000)
		for i := range items {
			items[i] = &swapItem{Change: &c}
		}
		name := [kinds]string{create: "create", move: "move", beat: "beat"}[k]
		all = append(all,
			Query{name, keyed, oneOf[k], args},
			Query{name + " in a session", session, oneOf[k], args},
			Query{name + " alone", s.texts.swapTx[alone].before[1], oneOf[k], args},
			Query{name + " last", s.texts.lent.made, lastOf[k], args},
			Query{name + " many in a session", session, manyOf[k], bulkArgs(items)},
			Query{name + " many", s.texts.swapTx[first].before[1], manyOf[k], bulkArgs(items)})
	}
	for i := range all {
		all[i].Text = t.in(all[i].Text)
	}
	return all
}

// CodeOf returns the SQLSTATE of an error of any severity.
func CodeOf(err error) string {
	if e, ok := errtype.Find[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Pool is the pool of s.
func (s *Store) Pool() *pgxpool.Pool { return s.source.(pgxSource).Pool }

// RollsBack is rollsBack.
func RollsBack(err error) bool { return rollsBack(err) }

// The possible effects of a text.
const (
	StaysInside    = int(staysInside)
	MayEnd         = int(mayEnd)
	MayEndAndWrite = int(mayEndAndWrite)
)

// EffectOf is effectOf of statements that are sent together.
func EffectOf(b *pgx.Batch) int { return int(effectOfBatch(b)) }

// Portions tells how many changes of these sizes go in each trip.
func Portions(sizes []int) []int {
	items := make([]swapItem, len(sizes))
	for i, n := range sizes {
		items[i].Change = &store.Change{To: store.Record{Input: make([]byte, n/2), Outcome: make([]byte, n-n/2)}}
	}
	var trips []int
	for _, p := range portions(items) {
		trips = append(trips, len(p))
	}
	return trips
}

// SetAhead moves the clock of p.
func (p *Partitions) SetAhead(d time.Duration) { p.ahead = d }

// Once is one turn of Run.
func (p *Partitions) Once(ctx context.Context) error { return p.once(ctx) }

// ListIn is List within tx.
func (p *Partitions) ListIn(ctx context.Context, tx pgx.Tx) ([]Partition, error) {
	on, err := p.store.tables(ctx)
	if err != nil {
		return nil, err
	}
	return list(ctx, tx.Conn(), on)
}

// SetTurn changes how long p tries to drop before it makes partitions again.
func (p *Partitions) SetTurn(d time.Duration) { p.turn = d }

// DropLock is the lock for dropping partitions.
const DropLock = dropLock

// OpenSessions opens as many connections of its own as s may have.
func (s *Store) OpenSessions(ctx context.Context) error {
	p := s.sessions
	p.mu.Lock()
	err := p.open(ctx)
	pool := p.pool
	p.opening = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.opening, p.used = false, true
	}()
	for range p.config.MaxConns {
		if err != nil {
			return err
		}
		var conn *pgxpool.Conn
		if conn, err = pool.Acquire(ctx); err == nil {
			defer conn.Release()
		}
	}
	return err
}

// Sessions returns the numbers of unused and of open connections of the store's own.
func (s *Store) Sessions() (idle, open int) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	if s.sessions.pool == nil {
		return 0, 0
	}
	stat := s.sessions.pool.Stat()
	return int(stat.IdleConns()), int(stat.TotalConns())
}

// CloseSessions closes the store's own connections, and opens no others.
func (s *Store) CloseSessions() {
	p := s.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pool != nil {
		p.pool.Close()
	}
	p.config, p.pool = nil, nil
}

// SetSessionsIdle changes how long the store keeps its own connections without use.
func (s *Store) SetSessionsIdle(d time.Duration) { s.sessions.idleFor = d }

// IsOpeningSession reports whether a connection is being opened.
func (s *Store) IsOpeningSession() bool {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return s.sessions.opening
}

// HasRefusedSession reports whether an attempt to open a connection has failed.
func (s *Store) HasRefusedSession() bool {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return !s.sessions.shut.IsZero()
}

// ErrNotReplicated is errNotReplicated.
var ErrNotReplicated = errNotReplicated
