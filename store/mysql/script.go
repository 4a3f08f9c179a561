package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/semelgo/semel/store"
)

// How long a statement waits for a lock.
type lockWait int

const (
	usual  lockWait = iota // as the session's settings say
	noWait                 // not at all; one second on MySQL, whose shortest limit that is
	skips                  // for SKIP LOCKED, which MariaDB 10.11 refuses with error 1180 if the limit is zero
	brief
)

// step is one statement of a script.
type step struct {
	text string
	args []any
	wait lockWait
	must int64 // the number of changed rows that the statement must have; zero: any
	err  error // the error of another number
	mark bool  // no statement: how far the script came
}

// markColumn is the column of the result that a mark gives.
const markColumn = "semel_mark"

// note takes one of the server's variables.
func (f *dialect) note(name, value string) {
	switch name {
	case "version":
		f.mariadb = strings.Contains(value, "MariaDB")
	case "wsrep_on":
		f.galera = value == "ON"
	case "log_bin":
		f.binlog = value == "ON"
	case "max_allowed_packet":
		// A byte can need two in a statement. The other fields of a full batch have at
		// most 4 MiB.
		n, _ := strconv.Atoi(value)
		f.maxBytes = max(maxOutcome, (n-4<<20)/2)
	}
}

// seconds is the setting of a lock wait.
func (f *dialect) seconds(w lockWait) int {
	switch {
	case w == brief:
		return 2
	case w == noWait && f.mariadb:
		return 0
	default:
		return 1
	}
}

// mostBusy is how many records of a batch may be busy before the others are not tried
// any more, because on MySQL each of them costs a second.
func (f *dialect) mostBusy() int {
	if f.mariadb {
		return 64
	}
	return 1
}

// query sends all steps, and returns the rows of the last SELECT among them. MariaDB
// gets them in one round trip, as a compound statement, which needs no permission for
// multiple statements. MySQL has none outside of stored procedures, and gets them one
// by one. After an error, the caller rolls back.
func (f *dialect) query(ctx context.Context, db runner, steps ...step) (*sql.Rows, error) {
	if !f.mariadb {
		return f.oneByOne(ctx, db, steps)
	}
	text, args := compound(f, steps)
	rows, err := db.QueryContext(ctx, text, args...)
	if codeOf(err) == codeWrongCount {
		return nil, wrongCount(err, steps)
	}
	return rows, err
}

// exec sends steps without rows.
func (f *dialect) exec(ctx context.Context, db runner, steps ...step) error {
	rows, err := f.query(ctx, db, steps...)
	if err != nil || rows == nil {
		return err
	}
	defer rows.Close()
	for rows.NextResultSet() { // only the error counts
	}
	return rows.Err()
}

// commit sends the steps and COMMIT. It returns how many marks were reached, including
// one before COMMIT: if that was not, nothing is committed. If the connection is lost,
// all count as reached.
func (f *dialect) commit(ctx context.Context, db runner, steps ...step) (reached int, err error) {
	steps = append(steps, step{mark: true}, step{text: `COMMIT`})
	if !f.mariadb {
		return f.commitOneByOne(ctx, db, steps)
	}
	rows, err := f.query(ctx, db, steps...)
	if err == nil {
		defer rows.Close()
		for more := true; more; more = rows.NextResultSet() {
			if columns, err := rows.Columns(); err == nil && len(columns) == 1 && columns[0] == markColumn {
				reached++
			}
			for rows.Next() { // a mark has no other content
			}
		}
		err = rows.Err()
	}
	if codeOf(err) == 0 && !errors.Is(err, store.ErrSuperseded) && !errors.Is(err, ErrEnded) {
		reached = len(steps)
	}
	return reached, err
}

func (f *dialect) commitOneByOne(ctx context.Context, db runner, steps []step) (reached int, err error) {
	for _, st := range steps {
		if st.mark {
			reached++
		} else if _, err := f.oneByOne(ctx, db, []step{st}); err != nil {
			return reached, err
		}
	}
	return reached, nil
}

// counts sends the steps as one transaction, and returns how many rows each has
// changed. After an error, the caller rolls back.
func (f *dialect) counts(ctx context.Context, db runner, steps []step) ([]int64, error) {
	counts := make([]int64, len(steps))
	if !f.mariadb {
		if _, err := db.ExecContext(ctx, sqlBegin); err != nil {
			return nil, err
		}
		for i, st := range steps {
			result, err := f.one(ctx, db, st)
			if err == nil {
				counts[i], err = result.RowsAffected()
			}
			if err != nil {
				return nil, err
			}
		}
		_, err := db.ExecContext(ctx, `COMMIT`)
		return counts, err
	}
	all, names, dest := []step{{text: sqlBegin}}, make([]string, len(steps)), make([]any, len(steps))
	for i := range steps {
		names[i], dest[i] = fmt.Sprintf("@semel_%d", i), &counts[i]
		all = append(all, steps[i], step{text: `SET ` + names[i] + ` = ROW_COUNT()`})
	}
	rows, err := f.query(ctx, db, append(all, step{text: `COMMIT`}, step{text: `SELECT ` + strings.Join(names, ", ")})...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		err = rows.Scan(dest...)
	}
	return counts, errors.Join(err, rows.Err())
}

// compound is the one statement of all steps.
func compound(f *dialect, steps []step) (string, []any) {
	var b strings.Builder
	var args []any
	b.WriteString("BEGIN NOT ATOMIC\n")
	for i, st := range steps {
		if st.mark {
			st.text = `SELECT 1 AS ` + markColumn
		}
		if st.wait != usual {
			b.WriteString(f.limit(st.wait))
		}
		b.WriteString(st.text)
		b.WriteString("\n;\n") // a statement can end with a comment
		if st.must > 0 {
			fmt.Fprintf(&b, "IF ROW_COUNT() <> %d THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = 'semel: step %d'; END IF;\n",
				st.must, codeWrongCount, i)
		}
		args = append(args, st.args...)
	}
	b.WriteString("END")
	return b.String(), args
}

// wrongCount returns the error of the step that the server names.
func wrongCount(err error, steps []step) error {
	for i := range steps {
		if steps[i].err != nil && strings.HasSuffix(err.Error(), fmt.Sprintf("semel: step %d", i)) {
			return steps[i].err
		}
	}
	return err
}

// oneByOne sends the steps one by one. Only the rows of the last one are kept.
func (f *dialect) oneByOne(ctx context.Context, db runner, steps []step) (*sql.Rows, error) {
	for i, st := range steps {
		if len(steps) > 1 && i == len(steps)-1 && (strings.HasPrefix(st.text, `SELECT`) || strings.HasPrefix(st.text, `(SELECT`)) {
			return db.QueryContext(ctx, st.text, st.args...)
		}
		result, err := f.one(ctx, db, st)
		if err == nil && st.must > 0 {
			var n int64
			if n, err = result.RowsAffected(); err == nil && n != st.must {
				err = st.err
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // the last step gives no rows
}

// one sends one step. On MySQL the session's own limit of lock waits is restored after
// it.
func (f *dialect) one(ctx context.Context, db runner, st step) (sql.Result, error) {
	switch {
	case st.wait == usual:
	case f.mariadb:
		st.text = f.limit(st.wait) + st.text
	default:
		text := fmt.Sprintf(`SET @semel_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = %d`, f.seconds(st.wait))
		if _, err := db.ExecContext(ctx, text); err != nil {
			return nil, err
		}
		defer func() {
			_, _ = db.ExecContext(withKind(ctx, restoring), `SET SESSION innodb_lock_wait_timeout = @semel_wait`)
		}()
	}
	return db.ExecContext(ctx, st.text, st.args...)
}

// limit is the beginning of a statement with a limit of lock waits, on MariaDB.
func (f *dialect) limit(w lockWait) string {
	return fmt.Sprintf(`SET STATEMENT innodb_lock_wait_timeout = %d FOR `, f.seconds(w))
}
