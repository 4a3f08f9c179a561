package redis

import (
	"fmt"
	"regexp"
	"time"
)

// Defaults of [Options].
const (
	DefaultPrefix         = "semel"
	DefaultShards         = 1  // on one server, and under Sentinel
	DefaultClusterShards  = 16 // on a Redis Cluster
	DefaultReplicaTimeout = time.Second
)

// maxShards limits the calls that a listing makes.
const maxShards = 1024

// Options are optional settings of a [Store]. The zero value has good defaults for one
// server.
type Options struct {
	// Prefix begins all keys. Empty means semel. It has letters, digits and the
	// characters _.:- only.
	Prefix string

	// Shards is the number of groups of keys, each of which is on one node of a
	// cluster. Zero means 1, and on a Redis Cluster 16. The number is kept in the
	// database and cannot change later: calls of a store with another number fail with
	// [ErrShards].
	Shards int

	// Replicas is the number of replicas that confirm each change. It must be the
	// number of all replicas of a primary, because each of them may become the primary.
	// Zero: no replica confirms.
	Replicas int

	// ReplicaTimeout is how long a call waits for the replicas. Zero means one second.
	// It must be less than the client's ReadTimeout.
	ReplicaTimeout time.Duration

	// AcceptFailoverLoss accepts that a failover takes back changes which were reported
	// as applied, and final states that callers have read. Capabilities then says what
	// the records of the primary survive as long as it stays the primary. Without it,
	// and with fewer Replicas than there are, they survive nothing.
	AcceptFailoverLoss bool
}

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// withDefaults returns the options for a client, which may be of a cluster.
func (o Options) withDefaults(cluster bool) (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Shards == 0 {
		o.Shards = DefaultShards
		if cluster {
			o.Shards = DefaultClusterShards
		}
	}
	if o.ReplicaTimeout == 0 {
		o.ReplicaTimeout = DefaultReplicaTimeout
	}
	switch {
	case !validPrefix.MatchString(o.Prefix):
		return o, fmt.Errorf("semel/redis: Options.Prefix is %q: it may have letters, digits and _.:- only", o.Prefix)
	case o.Shards < 0 || o.Shards > maxShards:
		return o, fmt.Errorf("semel/redis: Options.Shards is %d, not from 1 to %d", o.Shards, maxShards)
	case o.Replicas < 0:
		return o, fmt.Errorf("semel/redis: Options.Replicas is %d", o.Replicas)
	case o.ReplicaTimeout < time.Millisecond:
		return o, fmt.Errorf("semel/redis: Options.ReplicaTimeout is %v: the least is a millisecond", o.ReplicaTimeout)
	}
	return o, nil
}
