package failures_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// lossySetting is a setting with which a killed PostgreSQL loses records.
type lossySetting struct {
	name, set, reset string
	because          string // part of New's error
}

// TestRule17KilledServerLosesRecords kills PostgreSQL servers with SIGKILL. New rejects
// each of the settings by its name. A program that accepts the loss all the same gets an
// alarm, and after the kill its retry runs again. With the setting repaired New accepts
// the store, and after the kill the retry is answered from the record.
func TestRule17KilledServerLosesRecords(t *testing.T) {
	t.Parallel()
	for _, l := range []lossySetting{
		{
			"UnloggedTable", `ALTER TABLE semel_records SET UNLOGGED`, `ALTER TABLE semel_records SET LOGGED`,
			"table semel_records is unlogged",
		},
		{
			"AsynchronousCommitOfTheRole", `ALTER ROLE postgres SET synchronous_commit = off`, `ALTER ROLE postgres RESET synchronous_commit`,
			"synchronous_commit is off (set with ALTER ROLE for this role)",
		},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			t.Attr("engine", "postgres")
			killedServer(t, l)
		})
	}
}

func killedServer(t *testing.T, l lossySetting) {
	t.Helper()
	// The delay is that of the process that flushes asynchronous commits; the
	// longest delay leaves the most time for the kill.
	server := realtest.OwnPostgres(t, "fsync=on", "full_page_writes=on", "synchronous_commit=on", "wal_writer_delay=10s")
	p := ledger.Pool(t, server.Database(t))
	check.Require(t, pgmigrate.Up(t.Context(), p, pgmigrate.Options{}))
	mustRun(t, p, l.set)
	p.Reset()
	_, err := semel.New(records(t, p), semel.Options{})
	if err == nil || !strings.Contains(err.Error(), l.because) || !strings.Contains(err.Error(), "store.NoFailure") {
		t.Fatalf("New: %v, want it to reject the store: %s", err, l.because)
	}

	// It depends on the moment of the kill what the server has not yet flushed.
	round := 0
	realtest.Poll(t, "a record that is lost", func() bool {
		round++
		alarm := new(seen)
		runs, replayed := runAroundKill(t, server, p, "lossy"+strconv.Itoa(round), semel.Options{Survive: store.NoFailure, Observer: alarm})
		if alarm.count(event.NotDurable) == 0 {
			t.Error("no alarm not_durable, although New accepted a store that loses records")
		}
		return runs == 2 && !replayed
	})

	mustRun(t, p, l.reset)
	p.Reset()
	if runs, replayed := runAroundKill(t, server, p, "repaired", semel.Options{}); runs != 1 || !replayed {
		t.Errorf("with the setting repaired: %d runs, replayed %v, want one run and its replay", runs, replayed)
	}
}

// runAroundKill runs one key, kills and starts the server, and runs the key again. It
// returns how often the function ran, and whether the retry was a replay.
func runAroundKill(t *testing.T, server *realtest.Server, p *pgxpool.Pool, key string, o semel.Options) (runs int, replayed bool) {
	t.Helper()
	call := semel.Define("charge", semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), key, "in")
	charge := func(e *semel.Engine[pgx.Tx]) (bool, error) {
		_, replayed, err := semel.Do(t.Context(), e, call, func(context.Context) (string, error) {
			runs++
			return "charged", nil
		})
		return replayed, err
	}
	before := engineWith(t, p, o)
	if _, err := charge(before); err != nil {
		t.Fatalf("first call: %v", err)
	}
	server.Kill()
	server.Start(t)
	p.Reset()
	replayed, err := charge(engineWith(t, p, o))
	if err != nil {
		t.Logf("retry: %v", err)
	}
	return runs, replayed
}

func engineWith(t *testing.T, p *pgxpool.Pool, o semel.Options) *semel.Engine[pgx.Tx] {
	t.Helper()
	e, err := semel.New(records(t, p), o)
	check.Require(t, err, "New")
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func records(t *testing.T, p *pgxpool.Pool) *postgres.Store {
	t.Helper()
	s := check.Must(postgres.New(p, postgres.Options{}))(t)
	return s
}

func mustRun(t *testing.T, p *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := p.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
