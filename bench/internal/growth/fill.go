package growth

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
)

// fill empties the table and inserts n records. Each is a copy of a record that the
// store has written, with another identity. Large tables are filled without
// indexes, which are created afterwards.
func (t *table) fill(ctx context.Context, n int) error {
	id := "md5(i::text)::uuid"
	if t.ordered { // one millisecond apart, until now
		id = fmt.Sprintf("(lpad(to_hex((extract(epoch from now()) * 1000)::bigint - %d + i), 12, '0') || substr(md5(i::text), 13))::uuid", n)
	}
	insert, err := t.like(ctx, t.do, "semel_records", id, "first.expires + i * interval '1 millisecond'")
	if err != nil {
		return err
	}
	if n > small {
		return t.without(ctx, func() error { return t.insert(ctx, insert, n) })
	}
	if err := t.insert(ctx, insert, n); err != nil {
		return err
	}
	return t.exec(ctx, "vacuum analyze semel_records")
}

// like empties the table and returns a statement that inserts records with numbers
// $1 to $2, which are copies of a record that do has written.
func (d *database) like(ctx context.Context, do func(context.Context, *contest.Caller) error, into, id, expires string) (string, error) {
	if err := d.exec(ctx, "truncate semel_records"); err != nil {
		return "", err
	}
	_, err := contest.Once(ctx, 1, func(ctx context.Context, c *contest.Caller) (struct{}, error) { return struct{}{}, do(ctx, c) })
	if err != nil {
		return "", fmt.Errorf("write the first record: %w", err)
	}
	err = d.exec(ctx, "drop table if exists first", "create table first as select * from semel_records", "truncate semel_records")
	if err != nil {
		return "", err
	}
	rows, err := d.pool.Query(ctx, "select quote_ident(attname) from pg_attribute where attrelid = 'first'::regclass and attnum > 0 order by attnum")
	if err != nil {
		return "", fmt.Errorf("read columns: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("read columns: %w", err)
	}
	own := map[string]string{
		"id": id, "expires": expires, "owner": "hashint8extended(i, 1)", "key": "convert_to(md5(i::text)::uuid::text, 'UTF8')",
	}
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = cmp.Or(own[name], "first."+name)
	}
	return fmt.Sprintf("insert into %s (%s) select %s from first, generate_series($1::bigint, $2::bigint) i",
		into, strings.Join(names, ", "), strings.Join(values, ", ")), nil
}

// insert inserts the records over two sessions, half each.
func (d *database) insert(ctx context.Context, sql string, n int) error {
	var writing sync.WaitGroup
	var failed [2]error
	for i := range failed {
		writing.Go(func() { _, failed[i] = d.pool.Exec(ctx, sql, 1+i*n/2, (i+1)*n/2) })
	}
	writing.Wait()
	for _, err := range failed {
		if err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	return nil
}

// without drops the indexes, calls the function that fills the table, and creates
// the indexes again.
func (d *database) without(ctx context.Context, do func() error) error {
	drop, create, err := d.indexes(ctx)
	if err != nil {
		return err
	}
	if err := d.exec(ctx, drop...); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := d.with(ctx, append([]string{"set maintenance_work_mem = '1GB'"}, create...)...); err != nil {
		return err
	}
	return d.settle(ctx)
}

// settle finishes the server's work on the filled table, so that none is left
// during the measurement.
func (d *database) settle(ctx context.Context) error {
	return d.exec(ctx, "vacuum analyze semel_records", "checkpoint")
}

// indexes returns the statements that drop and create the table's indexes.
func (d *database) indexes(ctx context.Context) (drop, create []string, err error) {
	rows, err := d.pool.Query(ctx, `select coalesce('alter table semel_records drop constraint ' || quote_ident(c.conname), 'drop index ' || quote_ident(r.relname)),
coalesce('alter table semel_records add constraint ' || quote_ident(c.conname) || ' ' || pg_get_constraintdef(c.oid), pg_get_indexdef(i.indexrelid))
from pg_index i join pg_class r on r.oid = i.indexrelid left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
where i.indrelid = 'semel_records'::regclass`)
	if err != nil {
		return nil, nil, fmt.Errorf("read indexes: %w", err)
	}
	var gone, back string
	_, err = pgx.ForEachRow(rows, []any{&gone, &back}, func() error {
		drop, create = append(drop, gone), append(create, back)
		return nil
	})
	return drop, create, err
}

// with runs all statements in one session.
func (d *database) with(ctx context.Context, statements ...string) error {
	return d.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		for _, sql := range append(statements, "reset all") {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}
