package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// Engine is an engine whose records the console shows.
type Engine struct {
	// Name is the engine's name in the console. It may be empty if there is one engine.
	Name string
	// Runner is the engine. Give it the operations of the program, so that failed tasks
	// can be redriven that are no dead letters, and probes can be called.
	Runner semel.Runner
	// Journal is shown if it is given: outcomes that could not be recorded yet.
	Journal journal.Journal
	// Batches counts the sizes of the engine's batches: give it to the engine, too. Nil: the
	// overview says that they are not known.
	Batches *BatchSizes
	// Partitions lists the partitions of the table of records. Nil: it has none.
	Partitions func(ctx context.Context) ([]Partition, error)
}

// Partition is a part of the table of records.
type Partition struct {
	Name string
	// From and To are the times of the keys that it holds. A zero From means all before
	// To and all keys without a time.
	From, To time.Time
	// Dropping means that its drop is in progress, or was interrupted.
	Dropping bool
}

// Actor is a person who uses the console. The zero rights allow reading, without the
// callers' data.
type Actor struct {
	// Name is stored with each change, and is required.
	Name string
	// Reveal allows the actor to see inputs, results and the errors of attempts, and to call
	// probes. Each look at them is audited.
	Reveal bool
	// Write allows the actor to resolve, redrive, cancel and purge, and to call probes: without
	// Reveal it shows whether the effect was found, and not the result.
	Write bool
}

// mayProbe reports whether the actor may call probes.
func (a Actor) mayProbe() bool { return a.Reveal || a.Write }

// Action is what an actor does, for the audit.
type Action string

// The actions that are audited.
const (
	Reveal  Action = "reveal"  // see the data of callers
	Probe   Action = "probe"   // call the probe of a record's operation, and see what it finds
	Resolve Action = "resolve" // records in doubt
	Redrive Action = "redrive" // dead letters
	Cancel  Action = "cancel"  // waiting and running records
	Purge   Action = "purge"   // records past their retention
)

// Event is an action of an actor.
type Event struct {
	Actor, Engine string
	Action        Action
	// Reason is the reason that the actor gave. Reveal and Probe need none.
	Reason string
	// Records are the records. For Purge the store chooses them, and there are none here.
	Records []store.ID
}

// Options are the options of a console. Authenticate and Audit are required.
type Options struct {
	// Authenticate returns the actor of a request. An error, or an actor without a
	// name, is answered with 401, and its text is not shown. Nil is an error of
	// Handler.
	Authenticate func(r *http.Request) (Actor, error)
	// Audit is called before each action. If it returns an error, the action does not
	// happen. The store keeps a note with the actor and the reason of each change of
	// a record, if it keeps notes; Audit also has what changes no record. Nil is an
	// error of Handler.
	Audit func(ctx context.Context, e Event) error
}

// checkOptions returns why the arguments of Handler are invalid.
func checkOptions(engines []Engine, o Options) error {
	switch {
	case o.Authenticate == nil:
		return &semel.FieldError{Field: "Authenticate", Reason: "is required: without it every visitor could read the records"}
	case o.Audit == nil:
		return &semel.FieldError{Field: "Audit", Reason: "is required: it records each reveal and each change, with its actor"}
	case len(engines) == 0:
		return &semel.FieldError{Field: "engines", Reason: "are required"}
	}
	names := make(map[string]bool, len(engines))
	for i, e := range engines {
		switch {
		case e.Runner == nil:
			return &semel.FieldError{Field: fmt.Sprintf("engines[%d].Runner", i), Reason: "is required"}
		case e.Name == "" && len(engines) > 1:
			return &semel.FieldError{Field: fmt.Sprintf("engines[%d].Name", i), Reason: "is required if there are several engines"}
		case names[e.Name]:
			return &semel.FieldError{Field: fmt.Sprintf("engines[%d].Name", i), Reason: fmt.Sprintf("%q is used twice", e.Name)}
		}
		names[e.Name] = true
	}
	return nil
}
