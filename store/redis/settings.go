package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/store"
)

// settings are fields of INFO, and settings of CONFIG GET by their name. The latter are
// missing if the server forbids CONFIG GET.
type settings map[string]string

func readSettings(ctx context.Context, node *redis.Client) (settings, error) {
	info, err := node.Info(ctx, "server", "memory", "persistence", "replication", "cluster").Result()
	if err != nil {
		return nil, fmt.Errorf("INFO: %w", err)
	}
	v := make(settings)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			v[name] = value
		}
	}
	if v["loading"] == "1" { // until then aof_enabled is 0
		return nil, errors.New("LOADING the server loads its data")
	}
	config := redis.NewMapStringStringCmd(ctx, "CONFIG", "GET", "appendfsync", "no-appendfsync-on-rewrite")
	_ = node.Process(ctx, config)
	values, err := config.Result()
	if err != nil && !redis.HasErrorPrefix(err, "") { // it does not come from the server
		return nil, fmt.Errorf("CONFIG GET: %w", err)
	}
	maps.Copy(v, values)
	return v, nil
}

func (v settings) number(name string) int {
	n, _ := strconv.Atoi(v[name])
	return n
}

// check returns why the store cannot work with the server. The error names the setting and
// its value.
func (v settings) check(cluster bool) error {
	major, _, _ := strings.Cut(v["redis_version"], ".")
	newer, _ := strconv.Atoi(major)
	switch {
	case newer < 7:
		return fmt.Errorf("redis_version is %s: Redis 7.0 or Valkey 8 is needed", v["redis_version"])
	case v["role"] != "master":
		return fmt.Errorf("the role of the server is %s: connect to the primary", v["role"])
	case v["cluster_enabled"] == "1" && !cluster:
		return fmt.Errorf("cluster_enabled is 1: the server is a node of a cluster, which needs a *redis.ClusterClient")
	case v.number("maxmemory") > 0 && v["maxmemory_policy"] != "noeviction":
		return fmt.Errorf("maxmemory-policy is %s with maxmemory %s: the server may evict records; set it to noeviction", v["maxmemory_policy"], v["maxmemory"])
	default:
		return nil
	}
}

// survives returns the worst failure that loses no confirmed change, and the reasons if that
// is less than a failover.
func (v settings) survives(o Options, sentinel bool) (store.Failure, string) {
	worst := store.PowerLoss
	var reasons []string
	lossy := func(survives store.Failure, because string) {
		worst = min(worst, survives)
		reasons = append(reasons, because)
	}
	fsync, known := v["appendfsync"]
	switch {
	case v["aof_enabled"] != "1":
		lossy(store.NoFailure, "appendonly is no: the end of the server's process loses records")
	case !known:
		lossy(store.ProcessEnd, "appendfsync is unknown, because the server forbids CONFIG GET")
	case fsync != "always":
		lossy(store.ProcessEnd, "appendfsync is "+fsync+": the file reaches the disk later than the answer; set it to always")
	}
	if v["no-appendfsync-on-rewrite"] == "yes" {
		lossy(store.ProcessEnd, "no-appendfsync-on-rewrite is yes: nothing is synced to the disk while the file is rewritten")
	}
	connected := v.number("connected_slaves")
	replicated := connected > 0 || sentinel
	switch {
	case o.Replicas > 0 && o.Replicas >= connected:
		if worst == store.PowerLoss {
			worst = store.Failover
		}
	case replicated && !o.AcceptFailoverLoss:
		lossy(store.NoFailure, fmt.Sprintf("%d replicas are connected and Options.Replicas is %d, so that a failover takes back confirmed changes; "+
			"set Options.Replicas to the number of all replicas, or accept the loss with Options.AcceptFailoverLoss", connected, o.Replicas))
	case len(reasons) == 0:
		reasons = append(reasons, fmt.Sprintf("Options.Replicas is %d", o.Replicas))
	}
	return worst, strings.Join(reasons, "; ")
}
