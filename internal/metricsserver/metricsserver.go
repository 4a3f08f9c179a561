// Package metricsserver serves the metrics of a program's engines to Prometheus. It is for the
// programs of this repository.
package metricsserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/semelgo/semel/internal/serve"
	"github.com/semelgo/semel/semelotel"
)

// Server serves GET /metrics on an address of its own.
type Server struct {
	// Telemetry is the Observer and the Tracer for the program's engines.
	Telemetry *semelotel.Telemetry

	listener net.Listener
	web      *http.Server
}

// Listen opens the address, which is host:port. o.MeterProvider is not used.
func Listen(ctx context.Context, address string, o semelotel.Options, log *slog.Logger) (*Server, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("export metrics: %w", err)
	}
	o.MeterProvider = metric.NewMeterProvider(metric.WithReader(exporter))
	s := &Server{}
	if s.Telemetry, err = semelotel.New(o); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", address); err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: errorLog}))
	s.web = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, ErrorLog: errorLog}
	return s, nil
}

// URL returns the address of the metrics.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Run serves until ctx ends; scrapes that are running are lost then. A server that did not
// run must be closed.
func (s *Server) Run(ctx context.Context) error { return serve.HTTP(ctx, s.listener, s.web, 0) }

// Close ends Run, and frees the address.
func (s *Server) Close() {
	_ = s.web.Close() // scrapes that are running are lost
	_ = s.listener.Close()
}
