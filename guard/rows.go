package guard

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Rows are the guard rows of one operation whose records and domain are in different
// databases. T is the type of the operation's result.
//
// [Rows.InTx] commits the effect together with a guard row: the key, the attempt and the
// result. A row that is there proves that the effect was committed, so the records
// can be healed from it. A row that is missing proves nothing yet, because the
// transaction may still be committed; sealing settles this. [Rows.Seal] writes the row
// itself, with the least attempt that may still commit: the transactions of older
// attempts then fail, however late they come. So "not committed" is certain.
//
// Create the table with [Schema]. Give the operation the policy [Rows.Fenced] or
// [Rows.Heal], and call InTx once in its function:
//
//	var transfers = guard.NewRows[Receipt](guard.SQLDatabase(domain, guard.MySQL), "transfer")
//	var transfer = semel.Define("transfer", semel.OperationOptions[Transfer]{Policy: transfers.Fenced()})
//
//	receipt, replayed, err := semel.Do(ctx, engine, transfer.Call(scope, key, t), func(ctx context.Context) (Receipt, error) {
//		return transfers.InTx(ctx, func(ctx context.Context, tx *sql.Tx) (Receipt, error) { return insert(ctx, tx, t) })
//	})
//
// Rows are not deleted. Delete them only when they are older than the retention of the
// records, and than any process that may have been paused:
//
//	DELETE FROM semel_guard_rows WHERE written < ...
//
// While a row exists, its key does not have another effect, even if its record was
// purged: if the row is committed, calls return its result; if the row is sealed,
// attempts with smaller numbers end with [ErrSealed].
type Rows[T, Tx any] struct {
	db        Database[Tx]
	operation string
}

// NewRows returns the guard rows of the operation with that name.
func NewRows[T, Tx any](db Database[Tx], operation string) *Rows[T, Tx] {
	return &Rows[T, Tx]{db, operation}
}

// Fenced returns the policy that runs an operation again after a crash, after sealing
// all older attempts and looking for the guard row: one effect per key.
func (r *Rows[T, Tx]) Fenced() semel.Policy {
	return semel.Fenced(func(ctx context.Context, scope semel.Scope, key string, attempt uint32) error {
		_, _, err := r.Seal(ctx, scope, key, attempt)
		return err
	}, r.look)
}

// Heal returns the policy that never runs an operation again by itself: the guard row
// completes the record, and without one the record is in doubt, until [Rows.Settle]
// settles it.
func (r *Rows[T, Tx]) Heal() semel.Policy { return semel.Heal(r.look) }

// look is the probe of both policies.
func (r *Rows[T, Tx]) look(ctx context.Context, scope semel.Scope, key string) (any, bool, error) {
	row, err := r.read(ctx, r.idOf(scope.Bytes(), key))
	if err != nil || !row.committed {
		return nil, false, err
	}
	v, err := decode[T](row)
	return v, err == nil, err
}

// idOf returns the ID of a row, which is that of the record unless the key carries a
// time.
func (r *Rows[T, Tx]) idOf(scope, key string) string {
	return store.NewID(r.operation, scope, key).String()
}

// guardRow is a row of the table. The zero guardRow means that there is none.
type guardRow struct {
	attempt   uint32
	committed bool
	result    string
}

func decode[T any](row guardRow) (v T, err error) {
	if err := json.Unmarshal([]byte(row.result), &v); err != nil {
		return v, fmt.Errorf("semel/guard: decode the result: %w", err)
	}
	return v, nil
}

func (r *Rows[T, Tx]) read(ctx context.Context, id string) (row guardRow, err error) {
	s := r.db.dialect.statement(`SELECT attempt, committed, result FROM semel_guard_rows WHERE id = ?`, id)
	var attempt, committed int64
	err = r.db.conn.row(ctx, s.text, s.args).Scan(&attempt, &committed, &row.result)
	if errors.Is(err, sql.ErrNoRows) {
		return row, nil
	}
	if err != nil {
		return row, fmt.Errorf("semel/guard: read the guard row: %w", err)
	}
	row.attempt, row.committed = uint32(attempt), committed != 0
	return row, nil
}

// write writes a row on c: over the existing one if that is not committed and has an
// attempt of at most limit, and else as a new one. A violation of the primary key
// means that the existing row does not allow it.
//
// With a limit of 1, no row allows it, so the first attempts only insert. An update
// that finds no row would lock the gap on MySQL, and so lead to deadlocks.
func (r *Rows[T, Tx]) write(ctx context.Context, c Conn, id string, row guardRow, limit int64) error {
	committed := 0
	if row.committed {
		committed = 1
	}
	now := time.Now().Unix() //nolint:forbidigo // it is for the deletion of old rows only
	if limit > 1 {
		s := r.db.dialect.statement(`UPDATE semel_guard_rows SET attempt = ?, committed = ?, result = ?, written = ? `+
			`WHERE id = ? AND committed = 0 AND attempt <= ?`, int64(row.attempt), committed, row.result, now, id, limit)
		if n, err := c.exec(ctx, s.text, s.args); err != nil || n > 0 {
			return err
		}
	}
	s := r.db.dialect.statement(`INSERT INTO semel_guard_rows (id, attempt, committed, result, written) VALUES (?, ?, ?, ?, ?)`,
		id, int64(row.attempt), committed, row.result, now)
	_, err := c.exec(ctx, s.text, s.args)
	return err
}
