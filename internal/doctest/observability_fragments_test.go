package doctest_test

import (
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store"
)

var _ = []any{observed}

// observed contains the fragment of docs/observability.md.
func observed(s store.TxStore[pgx.Tx]) (*semel.Engine[pgx.Tx], func() error, error) {
	telemetry, err := semelotel.New(semelotel.Options{
		System:   "postgresql",               // the attribute db.system.name of everything
		Observer: event.Slog(slog.Default()), // also receives each event
	})
	if err != nil {
		return nil, nil, err
	}
	engine, err := semel.New(s, semel.Options{Observer: telemetry, Tracer: telemetry})
	if err != nil {
		return nil, nil, err
	}
	stop, err := telemetry.Watch(engine, semelotel.WatchOptions{}) // in one program for each store
	return engine, stop, err
}
