// Package semelotel reports what an engine does by OpenTelemetry: metrics of its events
// and of its store, and a span for each run of an operation's function. It uses the API of
// OpenTelemetry only, so the program chooses the SDK and the exporter. The page
// docs/observability.md lists the metrics, and has alerts with a runbook.
//
//	telemetry, err := semelotel.New(semelotel.Options{System: "postgresql"})
//	engine, err := semel.New(s, semel.Options{Observer: telemetry, Tracer: telemetry})
//	stop, err := telemetry.Watch(engine, semelotel.WatchOptions{})
//
// No metric and no span contains a key, a scope, an input or a result. Attributes of metrics
// have few values: names of operations, of kinds of events and of states.
package semelotel
