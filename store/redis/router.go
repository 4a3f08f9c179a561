package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// router finds the node of a key. The store sends its commands to nodes, and never by a
// client of a cluster, which would divide a pipeline, read from replicas, and follow a slot
// that is only partly at its new node.
type router struct {
	single  *redis.Client        // nil: it is a cluster
	cluster *redis.ClusterClient // nil: it is one server
}

func newRouter(client redis.UniversalClient) (router, error) {
	switch c := client.(type) {
	case *redis.Client:
		return router{single: c}, nil
	case *redis.ClusterClient:
		return router{cluster: c}, nil
	default:
		return router{}, fmt.Errorf("semel/redis: the client is a %T: a *redis.Client or a *redis.ClusterClient is needed", client)
	}
}

// node returns the client of the primary that has the key.
func (r router) node(ctx context.Context, key string) (*redis.Client, error) {
	if r.single != nil {
		return r.single, nil
	}
	node, err := r.cluster.MasterForKey(ctx, key)
	if err != nil {
		r.reload(ctx)
		return nil, fmt.Errorf("find the node of %q: %w", key, err)
	}
	return node, nil
}

// reload lets the client of a cluster read again which node has which keys.
func (r router) reload(ctx context.Context) {
	if r.cluster != nil {
		r.cluster.ReloadState(ctx)
	}
}

// primaries calls fn with the client of each primary, one after another.
func (r router) primaries(ctx context.Context, fn func(ctx context.Context, node *redis.Client) error) error {
	if r.single != nil {
		return fn(ctx, r.single)
	}
	turn := make(chan struct{}, 1)
	return r.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		return fn(ctx, node)
	})
}

// isMoved reports whether a command was refused because another node has, or will soon have,
// the key. It was not executed then.
func isMoved(err error) bool {
	return slices.ContainsFunc([]string{"MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "READONLY ", "LOADING ", "MASTERDOWN "},
		func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// underSentinel reports whether Sentinel may replace the server. go-redis gives the clients
// of redis.NewFailoverClient this address.
func (r router) underSentinel() bool {
	return r.single != nil && r.single.Options().Addr == "FailoverClient"
}
