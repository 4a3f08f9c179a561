package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// prepared is a statement of a session with its parameters, and what is made of its
// answer. Without read, there are no rows.
type prepared struct {
	text  string
	write func(r *raw)
	read  func(row *rawRow) error
	done  func(tag pgconn.CommandTag)
}

// inBinary is the format of all parameters and of all columns.
func inBinary() []int16 { return []int16{pgx.BinaryFormatCode} }

// ask sends statements in one trip, and waits for the answers as long as ctx lasts.
// Parameters are written as the server reads them: of a large batch that takes a
// third of what it takes by their types.
func (s *session) ask(ctx context.Context, all []prepared) error {
	return s.within(ctx, func(ctx context.Context) error {
		statements := make([]*pgconn.StatementDescription, len(all))
		for i, p := range all {
			var err error
			if statements[i], err = s.statement(ctx, p.text); err != nil {
				return err
			}
		}
		if len(all) == 1 {
			return s.askOne(ctx, statements[0], &all[0])
		}
		return s.askAll(ctx, statements, all)
	})
}

// statement prepares a statement, once.
func (s *session) statement(ctx context.Context, text string) (*pgconn.StatementDescription, error) {
	if known := s.statements[text]; known != nil {
		return known, nil
	}
	of, err := s.conn.Prepare(ctx, fmt.Sprintf("semel_%d", len(s.statements)), text)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	s.statements[text] = of
	return of, nil
}

func (s *session) askOne(ctx context.Context, of *pgconn.StatementDescription, p *prepared) error {
	s.raw.reset()
	p.write(&s.raw)
	return p.answer(s.conn.PgConn().ExecStatement(ctx, of, s.raw.all(), inBinary(), inBinary()))
}

func (s *session) askAll(ctx context.Context, of []*pgconn.StatementDescription, all []prepared) (err error) {
	trip := s.conn.PgConn().StartPipeline(ctx)
	for i := range all {
		s.raw.reset()
		all[i].write(&s.raw)
		trip.SendQueryStatement(of[i], s.raw.all(), inBinary(), inBinary())
	}
	if err = trip.Sync(); err == nil {
		err = answers(trip, all)
	}
	if closed := trip.Close(); err == nil {
		err = closed
	}
	return err
}

// answers reads the answer of each statement, up to the first error: what comes
// behind that was not done, and nothing of it holds.
func answers(trip *pgconn.Pipeline, all []prepared) error {
	for i := range all {
		got, err := trip.GetResults()
		if err != nil {
			return err
		}
		rows, ok := got.(*pgconn.ResultReader)
		if !ok {
			return fmt.Errorf("the server has answered with %T", got)
		}
		if err := all[i].answer(rows); err != nil {
			return err
		}
	}
	return nil
}

func (p *prepared) answer(rows *pgconn.ResultReader) (failed error) {
	for rows.NextRow() {
		if failed == nil {
			failed = p.read(&rawRow{columns: rows.Values()})
		}
	}
	tag, err := rows.Close()
	if err == nil {
		err = failed
	}
	if err == nil && p.done != nil {
		p.done(tag)
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
		write: func(r *raw) { r.listed(ids) },
		read: func(row *rawRow) error {
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
func (s *session) change(ctx context.Context, t *tables, items []item) (begun bool, err error) {
	if s.seen {
		return false, nil
	}
	groups, rest := []alike(nil), make([]*item, 0, most)
	if len(items) > most {
		groups, rest = sortOut(items)
	} else {
		for i := range items {
			rest = append(rest, &items[i])
		}
	}
	if len(rest) > most {
		return false, nil
	}
	all := make([]prepared, 0, len(groups)+len(rest))
	for i := range groups {
		all = append(all, groups[i].prepared(t))
	}
	for _, it := range rest {
		all = append(all, prepared{
			text:  t.one[kindOf(it.Change)],
			write: func(r *raw) { r.change(it.Change) },
			done:  func(tag pgconn.CommandTag) { it.made = tag.RowsAffected() == 1 },
		})
	}
	return true, s.ask(ctx, all)
}

// prepared is the statement for the group. Which of the changes it has made is not
// asked for where it need not be.
func (g *alike) prepared(t *tables) prepared {
	m := t.alike[g.kind]
	if !anyWaits(g.items) {
		return prepared{text: m.text, write: g.write, done: func(tag pgconn.CommandTag) { allMade(g.items, tag) }}
	}
	made := make(map[store.ID]bool, len(g.items))
	return prepared{
		text: m.told, write: g.write,
		read: func(row *rawRow) error { made[store.ID(row.columns[0])] = true; return nil },
		done: func(pgconn.CommandTag) { someMade(g.items, made) },
	}
}
