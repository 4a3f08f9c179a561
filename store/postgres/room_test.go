package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// If the server limits connections, the store opens a session only if enough connections are
// left for the pool's maximum.
func TestSessionsLeaveThePoolItsConnections(t *testing.T) {
	t.Parallel()
	url := database(t)
	admin := connect(t, url)
	name := one[string](t, admin, `SELECT current_database()::text`)
	mustExec(t, admin, `CREATE ROLE `+name+`_limited LOGIN PASSWORD 'limited' CONNECTION LIMIT 6`)
	mustExec(t, admin, `GRANT ALL ON ALL TABLES IN SCHEMA public TO `+name+`_limited`)
	for most, want := range map[int32]int{6: 0, 5: 1, 4: 2} {
		pool := connect(t, url, func(c *pgxpool.Config) {
			c.MaxConns = most
			c.ConnConfig.User, c.ConnConfig.Password = name+"_limited", "limited"
		})
		s := newStore(t, pool, postgres.Options{})
		tried := 0
		for n := 0; tried == 0 || n < 50; n++ {
			mustForce(t, s, create(fmt.Sprint(most, " ", n), store.InProgress, 1))
			if _, open := s.Sessions(); open > 0 {
				tried++
			}
		}
		realtest.Poll(t, "the session to be opened", func() bool { return !s.IsOpeningSession() })
		if idle, open := s.Sessions(); open > want || open > 0 && idle != open {
			t.Errorf("of 6 connections the pool may have %d: %d sessions are open, want %d at most", most, open, want)
		}
		s.CloseSessions()
		pool.Close()
		realtest.Poll(t, "the connections to be closed", func() bool {
			return one[int](t, admin, `SELECT count(*) FROM pg_stat_activity WHERE usename = current_database() || '_limited'`) == 0
		})
	}
	mustExec(t, admin, `DROP OWNED BY `+name+`_limited`)
	mustExec(t, admin, `DROP ROLE `+name+`_limited`)
}

// The query for free connections comes before the settings of a session. With these settings
// the planner estimates such a high cost that the server would compile the query.
func TestRoomIsAskedBeforeTheSettings(t *testing.T) {
	t.Parallel()
	asked := &texts{}
	s := newStore(t, connect(t, database(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = asked }), postgres.Options{MaxSessions: 1})
	check.Require(t, s.OpenSessions(t.Context()))
	room, settings := asked.first("rolconnlimit"), asked.first("set_config")
	if room < 0 || settings < 0 || room > settings {
		t.Errorf("room is asked for by statement %d, and settings are made from %d on", room, settings)
	}
}

// texts stores the statements.
type texts struct {
	mu   sync.Mutex
	said []string
}

func (s *texts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, data.SQL)
	return ctx
}
func (*texts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// first is the place of the first statement with that in it, below zero if there is none.
func (s *texts) first(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.IndexFunc(s.said, func(sql string) bool { return strings.Contains(sql, part) })
}
