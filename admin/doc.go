// Package admin has what operators and reconcilers do with records: list them, resolve
// those in doubt, redrive dead letters, cancel and reschedule, sweep and purge. Each
// function takes an engine, which checks the step with the protocol and emits its
// events.
//
//	for letter, err := range admin.DeadLetters(ctx, engine, "charge") {
package admin
