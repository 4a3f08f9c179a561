// Package rows lists all experiments.
package rows

import (
	"slices"

	"github.com/semelgo/semel/bench/internal/cloud"
	"github.com/semelgo/semel/bench/internal/etcd"
	"github.com/semelgo/semel/bench/internal/growth"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/mariadb"
	"github.com/semelgo/semel/bench/internal/outbox"
	"github.com/semelgo/semel/bench/internal/postgres"
	"github.com/semelgo/semel/bench/internal/redis"
	"github.com/semelgo/semel/bench/internal/rivals"
	"github.com/semelgo/semel/bench/internal/sqlite"
	"github.com/semelgo/semel/bench/internal/web"
)

// All returns all experiments, in the order in which they run.
func All() []lab.Experiment {
	return slices.Concat(
		postgres.Experiments(),
		sqlite.Experiments(),
		mariadb.Experiments(),
		redis.Experiments(),
		etcd.Experiments(),
		web.Experiments(),
		rivals.Experiments(),
		outbox.Experiments(),
		growth.Experiments(),
		cloud.Experiments(),
	)
}
