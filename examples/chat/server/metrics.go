package server

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/metricsserver"
	"github.com/semelgo/semel/semelotel"
)

// openMetrics opens the address of the metrics, if a server is to have one.
func openMetrics(ctx context.Context, s *app) (err error) {
	if s.config.metrics == "" || s.config.command != nil {
		return nil
	}
	s.metrics, err = metricsserver.Listen(ctx, s.config.metrics, semelotel.Options{System: systemOf(s.config.db), Observer: event.Slog(s.log)}, s.log)
	return err
}

// systemOf returns the name of a database's kind, as OpenTelemetry has it.
func systemOf(db string) string {
	switch {
	case isPostgres(db):
		return "postgresql"
	case isMySQL(db):
		return "mariadb"
	default:
		return "sqlite"
	}
}

// observerOf returns the Observer of both engines.
func observerOf(s *app) event.Observer {
	if s.metrics == nil {
		return event.Slog(s.log)
	}
	return s.metrics.Telemetry
}

// tracerOf returns the Tracer of both engines.
func tracerOf(s *app) event.Tracer {
	if s.metrics == nil {
		return nil
	}
	return s.metrics.Telemetry
}

// watchDatabases has the metrics contain what the databases hold. Their numbers do not mix, because the
// two databases of -records have different operations.
func watchDatabases(s *app) error {
	if s.metrics == nil {
		return nil
	}
	engines := []semel.Runner{s.queue}
	if s.records != s.domain {
		engines = append(engines, s.engine)
	}
	for _, e := range engines {
		if _, err := s.metrics.Telemetry.Watch(e, semelotel.WatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
