// Package adapter is for authors of edges and of workers: code between the engine and
// a protocol such as HTTP, a broker or a queue, which cannot pass its work as a
// function to semel.Do. An edge begins an attempt, runs the work with the attempt's
// context, and ends it. The example examples/edge is an HTTP adapter that uses only this
// package and semel, from a module of its own.
//
//	attempt, outcome, err := adapter.Begin(ctx, engine, call)
//	switch {
//	case err != nil: // answer the error
//	case outcome != nil: // a replay: answer from the outcome
//	default:
//		defer attempt.Abandon()
//		value, err := work(attempt.Context())
//		outcome, err = attempt.End(value, err)
//	}
package adapter
