package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
)

// SetCommitBound changes how long s waits for the end of a transaction.
func (s *Store) SetCommitBound(d time.Duration) { s.commitBound = d }

// LongestWait is how long a Swap waits for transactions that hold its records: once for the
// batch, and then for each record alone.
const LongestWait = busyAfter + someBusy*busyAfterAlone + (manyBusy-someBusy)*busyAtOnce

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
	id, t := uuid(store.ID{1}), newTables("public", false)
	all := []Query{
		{"look", s.texts.lent.made, t.look, []any{id}},
		{"stands", s.texts.byKey, t.stands, []any{id}},
		{"stands off", s.texts.byKey, t.standsOff, []any{id}},
		{"get many", s.texts.byKey, t.getMany, []any{uuids(make([]store.ID, 1000))}},
		{"scan", s.texts.inOrder, t.scan, []any{id, int16(1), []byte("test"), int64(100), int64(0)}},
		{"scan rare", s.texts.inOrder, t.scanRare, []any{id, int16(3), []byte("test"), int64(100), int64(0)}},
		{"scan due", s.texts.listed, t.scanDue, []any{[]byte("test"), int64(100), int64(0)}},
		{"scan due waits", s.texts.listed, t.scanWaits, []any{[]byte("test"), int64(100), int64(0)}},
		{"scan due leases", s.texts.listed, t.scanLeases, []any{[]byte{}, int64(100), int64(0)}},
		{"dequeue", s.texts.queue, t.dequeue, []any{[]byte("test"), int64(100), int64(1), int64(1)}},
		{"dequeue again", s.texts.listed, t.claimed, []any{int64(1), []byte("test")}},
		{"purge", s.texts.inOrder, t.purge, []any{int64(500)}},
		{"notes", s.texts.byKey, t.notes, []any{id}},
	}
	session := `SELECT ` + set(sessionSettings()[:len(sessionSettings())-2])
	all = append(all, Query{"get many in a session", session, t.getMany, []any{uuids(make([]store.ID, 1000))}},
		Query{"dequeue in a session", session, t.dequeue, []any{[]byte("test"), int64(100), int64(1), int64(1)}})
	for _, c := range []store.Change{change, made, beaten} {
		k, args := statement(&c)
		items := make([]*swapItem, 1000)
		for i := range items {
			items[i] = &swapItem{Change: &c}
		}
		name := [kinds]string{create: "create", move: "move", beat: "beat"}[k]
		alike := []any{uuids(make([]store.ID, 1000)), make([]int64, 1000), make([][]byte, 1000)}
		if k == create {
			alike = append(alike, make([][]byte, 1000), make([][]byte, 1000), 1, 1, nil, nil, false, []byte("test"), 0)
		} else {
			alike = append(alike, 2, 1, 4, 1, nil, nil, false)
		}
		all = append(all,
			Query{name, s.texts.swap.one.before[0], t.one[k], args},
			Query{name + " in a session", session, t.one[k], args},
			Query{name + " alone", s.texts.swapTx.alone.before[1], t.one[k], args},
			Query{name + " last", s.texts.lent.made, t.last[k], args},
			Query{name + " many", s.texts.swapTx.many.before[1], t.many[k].text, bulkArgs(items)},
			Query{name + " many, told", s.texts.swapTx.many.before[1], t.many[k].applied, bulkArgs(items)})
		if t.alike[k].text != "" {
			all = append(all, Query{name + " alike", session, t.alike[k].text, alike},
				Query{name + " alike, told", session, t.alike[k].applied, alike})
		}
		if k == move {
			all = append(all, Query{"move, finish", session, t.finish, []any{id, 2, 1, 1, 4, nil, false, []byte("outcome")}})
		}
		if k == create {
			queued := append(slices.Clone(alike), make([][]byte, 1000))
			all = append(all, Query{"create alike, queued", session, t.queue.text, queued},
				Query{"create alike, queued, told", session, t.queue.applied, queued})
			all = append(all, Query{"create lone", `SELECT 1`, t.lone, append(args, "100ms")})
		}
		all = append(all,
			Query{name + " same", s.texts.byKey, t.same, missedArgs([]swapItem{{Change: &c}})},
			Query{name + " others", s.texts.byKey, t.others, missedArgs([]swapItem{{Change: &c}})})
	}
	return all
}

// CodeOf returns the SQLSTATE of an error of any severity.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Pool is the pool of s.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// RollsBack is rollsBack.
func RollsBack(err error) bool { return rollsBack(err) }

// How far a text may go.
const (
	ReachInside = int(reachInside)
	ReachEnd    = int(reachEnd)
	ReachBeyond = int(reachBeyond)
)

// ReachOf is reachOf of statements that are sent one by one, or together.
func ReachOf(b *pgx.Batch) int { return int(effectOfBatch(b)) }

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
	return list(ctx, tx, on)
}

// SetTurn changes how long p tries to drop before it makes partitions again.
func (p *Partitions) SetTurn(d time.Duration) { p.turn = d }

// DropLock is the lock for dropping partitions.
const DropLock = dropLock

// OpenSessions opens as many sessions as s may have.
func (s *Store) OpenSessions(ctx context.Context) error {
	for range s.sessions.most {
		own, err := openSession(ctx, s.sessions.config, s.sessions.unopened)
		if err != nil {
			return err
		}
		s.sessions.mu.Lock()
		s.sessions.open++
		s.sessions.mu.Unlock()
		s.sessions.give(own)
	}
	return nil
}

// Sessions returns the numbers of unused and of open sessions.
func (s *Store) Sessions() (idle, open int) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.idle), s.sessions.open
}

// CloseSessions closes the unused sessions, and opens no others.
func (s *Store) CloseSessions() {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	for _, own := range s.sessions.idle {
		own.close()
	}
	s.sessions.open -= len(s.sessions.idle)
	s.sessions.idle, s.sessions.most = nil, 0
}

// SetSessionsIdle changes how long sessions are kept for the next call.
func (s *Store) SetSessionsIdle(d time.Duration) { s.sessions.idleFor = d }

// RawCreate are the parameters of a create, for the driver and as the server has them.
func RawCreate(c *store.Change) ([]any, [][]byte) {
	_, args := statement(c)
	var r encoder
	r.change(c)
	var values [][]byte
	for rest := r.bytes; len(values) < r.n; {
		size := binary.BigEndian.Uint32(rest)
		rest = rest[sizeBytes:]
		if size == nullSize {
			values = append(values, nil)
			continue
		}
		values, rest = append(values, rest[:size:size]), rest[size:]
	}
	return args, values
}

// SettleSessions waits until none is being opened.
func (s *Store) SettleSessions() {
	for {
		s.sessions.mu.Lock()
		settled := len(s.sessions.idle) == s.sessions.open
		s.sessions.mu.Unlock()
		if settled {
			return
		}
		runtime.Gosched()
	}
}

// KeptRoom tells the most bytes that an idle connection of s keeps for its next trip.
func (s *Store) KeptRoom(ctx context.Context) (most int) {
	for _, c := range s.pool.AcquireAllIdle(ctx) {
		if of := preparedConnOf(c.Conn()); of != nil {
			most = max(most, cap(of.out.bytes), cap(of.out.raw.bytes))
			for _, v := range of.args.ParamValues {
				most = max(most, cap(v))
			}
		}
		c.Release()
	}
	return most
}
