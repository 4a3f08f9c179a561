// Package event describes what an engine reports to its observer: claims, ends,
// takeovers, faults of the store, and alarms on which an operator must act.
//
//	engine, err := semel.New(s, semel.Options{Observer: event.Slog(slog.Default())})
package event
