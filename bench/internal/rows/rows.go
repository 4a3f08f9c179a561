// Package rows is the list of all that is measured.
package rows

import (
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/postgres"
)

// All experiments, in the order they are made.
func All() []lab.Experiment {
	var all []lab.Experiment
	all = append(all, postgres.Experiments()...)
	return all
}
