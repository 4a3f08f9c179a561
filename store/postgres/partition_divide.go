package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Divide turns the table of records into a partitioned one, of which what was
// there is the first partition, and makes the partitions that follow it. When that
// has been done it only makes what is missing.
//
// The records are read once, while others go on writing them. Then the table is
// locked for a moment, in one transaction; LockTimeout bounds how long one try for
// that may keep others waiting. Processes that use the table need not be stopped.
// From its beginning on, keys of a time more than a Width ahead have no place until
// it is done: one that was broken off is to be done again before that time comes.
// The new table has the privileges of the old one, and its owner, and the view
// semel_record_view reads it; triggers, row security, publications and views of your
// own stay behind, at the first partition.
func (p *Partitions) Divide(ctx context.Context) error {
	return p.withLock(ctx, "divide the table of records", makeLock, func(ctx context.Context, k *partitionLock) error {
		err := isDivided(ctx, k.conn, k.on)
		if errors.Is(err, ErrNotDivided) {
			err = k.divide(ctx)
		}
		if err == nil {
			_, err = k.ensure(ctx)
		}
		return err
	})
}

func (k *partitionLock) divide(ctx context.Context) error {
	to, err := k.bindFirst(ctx)
	if err != nil {
		return err
	}
	// The bound is known to hold, so attaching need not read the records again.
	if _, err := k.conn.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s VALIDATE CONSTRAINT %s`, k.on.in("semel_records"), firstBound)); err != nil {
		return fmt.Errorf("find the bound of what is there: %w", err)
	}
	return k.within(ctx, k.options.LockTimeout, func(ctx context.Context, tx pgx.Tx) error { return k.exchange(ctx, tx, to) })
}

// bindFirst keeps the table from getting records beyond the bound that it will
// have as the first partition: the end of a partition's time that is at least a
// partition ahead of the server's clock and of every key.
func (k *partitionLock) bindFirst(ctx context.Context) (to time.Time, err error) {
	table := k.on.in("semel_records")
	err = k.within(ctx, k.options.LockTimeout, func(ctx context.Context, tx pgx.Tx) error {
		err := execAll(ctx, tx, fmt.Sprintf(`LOCK TABLE %s IN ACCESS EXCLUSIVE MODE`, table),
			fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s`, table, firstBound)) // of a try before
		if err != nil {
			return err
		}
		var id string
		if err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT coalesce((SELECT id::text FROM %s ORDER BY id DESC LIMIT 1), '')`, table)).Scan(&id); err != nil {
			return err
		}
		last := k.now
		if at := timeOf(id); at.After(last) {
			last = at
		}
		to = k.slotEnd(last.Add(k.options.Width))
		return execAll(ctx, tx, fmt.Sprintf(`ALTER TABLE %s ADD CONSTRAINT %s CHECK (id < %s) NOT VALID`, table, firstBound, literal(to)))
	})
	return to, err
}

// exchange puts a partitioned table in the place of the table, which becomes its
// first partition.
func (k *partitionLock) exchange(ctx context.Context, tx pgx.Tx, to time.Time) error {
	table, view, first := k.on.in("semel_records"), k.on.in("semel_record_view"), k.on.beside(k.on.firstPartition())
	replaced, err := textOf(ctx, tx, sqlView, view) // read before the table has another name
	if err != nil {
		return err
	}
	locked := table
	if len(replaced) > 0 {
		locked = view + ", " + table // in the order in which a query over the view locks them
	}
	if err := execAll(ctx, tx, fmt.Sprintf(`LOCK TABLE %s IN ACCESS EXCLUSIVE MODE`, locked)); err != nil {
		return err
	}
	renames, err := textOf(ctx, tx, sqlRenames, table)
	if err != nil {
		return err
	}
	text := append([]string{fmt.Sprintf(`ALTER TABLE %s RENAME TO %s`, table, k.on.firstPartition())}, renames...)
	text = append(text, fmt.Sprintf(
		`CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING CONSTRAINTS EXCLUDING INDEXES) PARTITION BY RANGE (id)`, table, first))
	for _, read := range []string{sqlConstraints, sqlIndexes, sqlOwner, sqlPrivileges} {
		again, err := textOf(ctx, tx, read, table)
		if err != nil {
			return err
		}
		text = append(text, again...)
	}
	text = append(text,
		fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%s)`, table, first, literal(to)),
		fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %s`, first, firstBound))
	return execAll(ctx, tx, append(text, replaced...)...)
}

// What is written anew for the table that is put in the place of $1, read while
// that is still there. The names of its indexes are needed for the new one.
const (
	sqlRenames = `SELECT format('ALTER INDEX %s RENAME TO %I', indexrelid::regclass, left(c.relname, 57) || '_first')
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = $1::text::regclass`

	// A view reads the table that it was created for, even after a rename.
	// Replacing the view keeps its owner and its privileges.
	sqlView = `SELECT format('CREATE OR REPLACE VIEW %s AS %s', $1::text, pg_get_viewdef(to_regclass($1::text)))
WHERE to_regclass($1::text) IS NOT NULL`

	sqlConstraints = `SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', $1::text, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = $1::text::regclass AND conname <> '` + firstBound + `' AND contype IN ('c', 'p', 'u')`

	sqlIndexes = `SELECT pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = $1::text::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid)`

	sqlOwner = `SELECT format('ALTER TABLE %s OWNER TO %s', $1::text, relowner::regrole)
FROM pg_class WHERE oid = $1::text::regclass AND relowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user)`

	sqlPrivileges = `SELECT format('GRANT %s ON %s TO %s%s', a.privilege_type, $1::text,
CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = $1::text::regclass AND a.grantee <> c.relowner`
)

// textOf reads statements that the server writes.
func textOf(ctx context.Context, tx pgx.Tx, read, table string) ([]string, error) {
	rows, err := tx.Query(ctx, read, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func execAll(ctx context.Context, tx pgx.Tx, statements ...string) error {
	for _, text := range statements {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}
