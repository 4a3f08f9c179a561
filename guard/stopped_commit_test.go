package guard_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
)

// committer are the operations of a process that is stopped before its COMMIT.
type committer struct {
	db            *sql.DB
	insert        string
	healed        *guard.Rows[receipt, *sql.Tx]
	fenced        *guard.Rows[receipt, *sql.Tx]
	opHeal, opRun *semel.Operation[string]
}

func newCommitter(driver, name string) *committer {
	c := &committer{db: must(sql.Open(driver, name)), insert: `INSERT INTO effects (id) VALUES (?)`}
	dialect := guard.MySQL
	if driver == "pgx" {
		dialect, c.insert = guard.PostgreSQL, `INSERT INTO effects (id) VALUES ($1)`
	}
	c.healed = guard.NewRows[receipt](guard.SQLDatabase(c.db, dialect), "healed")
	c.fenced = guard.NewRows[receipt](guard.SQLDatabase(c.db, dialect), "fenced")
	c.opHeal = semel.Define("healed", semel.OperationOptions[string]{Policy: c.healed.Heal()})
	c.opRun = semel.Define("fenced", semel.OperationOptions[string]{Policy: c.fenced.Fenced()})
	return c
}

// do has an effect, after a pause before the COMMIT.
func (c *committer) do(e semel.Runner, key string, pause func()) (receipt, error) {
	op, rows := c.opRun, c.fenced
	if strings.HasPrefix(key, "healed") {
		op, rows = c.opHeal, c.healed
	}
	v, _, err := semel.Do(context.Background(), e, op.Call(me, key, ""), func(ctx context.Context) (receipt, error) {
		return rows.InTx(context.WithoutCancel(ctx), func(ctx context.Context, tx *sql.Tx) (receipt, error) {
			_, err := tx.ExecContext(ctx, c.insert, key)
			pause()
			return receipt{7, key}, err
		})
	})
	return v, err
}

// runCommitsChild runs attempts that wait before their COMMIT, and ignore that the
// lease is lost.
func runCommitsChild() {
	e, c, in := childRecords(), newCommitter(os.Args[2], os.Args[3]), bufio.NewScanner(os.Stdin)
	for in.Scan() {
		v, err := c.do(e, in.Text(), func() {
			fmt.Println("open")
			in.Scan()
		})
		fmt.Println("ended", v.For, err)
	}
}

// TestSealAgainstAStoppedProcess: the leader is stopped with SIGSTOP before its COMMIT.
// Under Heal the record is settled as Failed, under Fenced another process takes over.
// When the leader continues, its COMMIT is refused.
func TestSealAgainstAStoppedProcess(t *testing.T) {
	t.Parallel()
	for name, records := range recordsApart() {
		t.Run("postgres, records in "+name, func(t *testing.T) {
			t.Parallel()
			stopCommits(t, records(t), "pgx", realtest.Postgres(t).Database(t), func(name string) *domain[*sql.Tx] {
				db := ledger.SQL(t, "pgx", name)
				return onSQL(t, db, db, guard.PostgreSQL, nil)
			})
		})
	}
	t.Run("mariadb, records in sqlite", func(t *testing.T) {
		t.Parallel()
		stopCommits(t, sqliteRecords(t), "mysql", realtest.MariaDB(t).Database(t), func(name string) *domain[*sql.Tx] {
			db := ledger.SQL(t, "mysql", name)
			return onSQL(t, db, db, guard.MySQL, nil)
		})
	})
}

func stopCommits(t *testing.T, records servers.Place, driver, name string, open func(name string) *domain[*sql.Tx]) {
	t.Helper()
	d, c := open(name), newCommitter(driver, name)
	t.Cleanup(func() { _ = c.db.Close() })
	e := sharedRecordsFor(t, records)
	child := realtest.StartProcess(t, realtest.Self(t, "GUARD_CHILD=commits", text(records), driver, name))
	for round := range rounds(10) { // each waits for a lease to expire
		heals := round%2 == 0
		key := map[bool]string{true: "healed", false: "fenced"}[heals] + strconv.Itoa(round)
		child.Command(t, key)
		child.Await(t, "open")
		stopBetweenWrites(t, child, e, key)
		v, err := c.do(e, key, func() {})
		wantEnd, wantEffects := "ended "+key+" <nil>", 1
		if heals {
			settleInDoubt(t, c, e, key, err)
			wantEnd, wantEffects = "ended  not_committed: the operation has failed without an effect", 0
		} else if err != nil || v.For != key {
			t.Errorf("the takeover of %s: %+v, %v", key, v, err)
		}
		child.Signal(t, syscall.SIGCONT)
		child.Command(t, "continue")
		check.Equal(t, child.Await(t, "ended"), wantEnd, "the stopped leader")
		check.Equal(t, d.count("effects", key), wantEffects, "%s: effects", key)
	}
}
