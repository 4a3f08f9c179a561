package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/semelgo/semel/store"
)

// prepared is a statement of a session with its parameters, and what is made of its
// answer. Without read, there are no rows.
type prepared struct {
	text  string
	write func(r *encoder)
	read  func(row *decoder) error
	done  func(tag pgconn.CommandTag)
}

// ask sends statements in one trip, and waits for the answers as long as ctx lasts. It
// speaks to the server itself: what the driver does for any statement, above all a timer
// for each trip and a buffer that it makes anew, costs as much as the trip.
//
// All is written before anything is read. What is answered meanwhile must find room in
// the buffers on the way: it is a few bytes for each statement, and of one that has rows
// at most an ID for each change, unless it is the only one.
func (s *session) ask(ctx context.Context, all []prepared) error {
	return s.within(ctx, func(ctx context.Context) error {
		err := s.say(ctx, all)
		if err == nil {
			err = s.hear(all)
		}
		return err
	})
}

func (s *session) say(ctx context.Context, all []prepared) error {
	s.out.reset()
	for i := range all {
		name, err := s.statement(ctx, all[i].text)
		if err != nil {
			return err
		}
		s.out.execute(name, all[i].write)
	}
	s.out.sync()
	if _, err := s.wire.Write(s.out.bytes); err != nil {
		s.close()
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// statement prepares a statement, once, and returns its name.
func (s *session) statement(ctx context.Context, text string) (string, error) {
	if known := s.statements[text]; known != "" {
		return known, nil
	}
	name := "semel_" + strconv.Itoa(len(s.statements))
	if _, err := s.conn.Prepare(ctx, name, text); err != nil {
		return "", fmt.Errorf("prepare: %w", err)
	}
	s.statements[text] = name
	return name, nil
}

// hear reads the answers, up to the server's word that it is ready for more. With an
// error, nothing was done.
func (s *session) hear(all []prepared) (failed error) {
	wire := s.conn.PgConn().Frontend()
	for {
		said, err := wire.Receive()
		if err != nil {
			s.close()
			if failed != nil {
				return failed // the server's last word
			}
			return fmt.Errorf("receive: %w", err)
		}
		switch said := said.(type) {
		case *pgproto3.DataRow:
			if failed == nil {
				failed = all[0].read(&decoder{columns: said.Values})
			}
		case *pgproto3.CommandComplete:
			if failed == nil && all[0].done != nil {
				all[0].done(pgconn.NewCommandTag(string(said.CommandTag)))
			}
			all = all[1:]
		case *pgproto3.ErrorResponse:
			if e := s.refused(said); failed == nil {
				failed = e
			}
		case *pgproto3.ReadyForQuery:
			if failed == nil && len(all) > 0 {
				failed = errOutOfSync
			}
			if said.TxStatus != outside || errors.Is(failed, errOutOfSync) {
				s.close()
			}
			return failed
		}
	}
}

// refused is an error of the server, after which the connection is closed if it says so.
func (s *session) refused(said *pgproto3.ErrorResponse) error {
	err := pgconn.ErrorResponseToPgError(said)
	if s.goesOn != nil && !s.goesOn(s.conn.PgConn(), err) {
		s.close()
	}
	return err
}

// get reads what stands.
func (s *session) get(ctx context.Context, t *tables, ids []store.ID, use func(*store.Record)) error {
	if s.seen {
		return trip(ctx, s, frame{}, func(b *pgx.Batch) { b.Queue(t.getMany, uuids(ids)).Query(eachRecord(use)) })
	}
	return s.ask(ctx, []prepared{{
		text:  t.getMany,
		write: func(r *encoder) { r.listed(ids) },
		read: func(row *decoder) error {
			r, err := row.record()
			if err == nil {
				use(r)
			}
			return err
		},
	}})
}

// change makes the changes. It reports false, and has not begun, if there are too
// many of them that are like no others, or if a tracer is to see them.
func (s *session) change(ctx context.Context, t *tables, items []swapItem) (begun bool, err error) {
	if s.seen {
		return false, nil
	}
	groups, rest := []bulkGroup(nil), make([]*swapItem, 0, most)
	if len(items) > most {
		groups, rest = groupChanges(items)
	} else {
		for i := range items {
			rest = append(rest, &items[i])
		}
	}
	if len(rest) > most {
		return false, nil
	}
	return true, s.ask(ctx, statements(t, groups, rest))
}

// statements are those that make the changes.
func statements(t *tables, groups []bulkGroup, rest []*swapItem) []prepared {
	all := make([]prepared, 0, len(groups)+len(rest))
	for i := range groups {
		all = append(all, groups[i].prepared(t))
	}
	for _, it := range rest {
		all = append(all, it.prepared(t))
	}
	return all
}

// prepared is the statement for the change by itself.
func (it *swapItem) prepared(t *tables) prepared {
	p := prepared{
		text:  t.one[kindOf(it.Change)],
		write: func(r *encoder) { r.change(it.Change) },
		done:  func(tag pgconn.CommandTag) { it.made = tag.RowsAffected() == 1 },
	}
	if isFinish(it.Change) {
		p.text, p.write = t.finish, func(r *encoder) { r.finish(it.Change) }
	}
	return p
}

// prepared is the statement for the group. Which of the changes it has made is not
// asked for where it need not be.
func (g *bulkGroup) prepared(t *tables) prepared {
	m := g.text(t)
	if !anyPending(g.items) {
		return prepared{text: m.text, write: g.write, done: func(tag pgconn.CommandTag) { markAllApplied(g.items, tag) }}
	}
	made := make(map[store.ID]bool, len(g.items))
	return prepared{
		text: m.applied, write: g.write,
		read: func(row *decoder) error { made[store.ID(row.columns[0])] = true; return nil },
		done: func(pgconn.CommandTag) { markApplied(g.items, made) },
	}
}
