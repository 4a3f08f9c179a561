package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/store"
)

// DefaultPrefix is the default of [Options].Prefix.
const DefaultPrefix = "semel"

// Limits of one request, within the defaults of the server.
const (
	maxOutcome = 512 << 10
	maxBatch   = 100
	maxBytes   = 2 * maxOutcome
)

// failoverMembers is the least number of voting members of which one may be lost.
const failoverMembers = 3

var (
	_ store.Store   = (*Store)(nil)
	_ store.Auditor = (*Store)(nil)
	_ store.Watcher = (*Store)(nil)
)

// Options are optional settings of a [Store].
type Options struct {
	// Prefix begins all keys, and is followed by a slash. Empty means semel. It has at most
	// 64 bytes and no slash. Applications that share a cluster have different prefixes.
	Prefix string

	// Skew is the largest difference between the clocks of any two processes that use the
	// records. Other processes take an attempt over that much later, so that its leader
	// knows by then that its lease is over. Zero: the clocks are the same. Larger
	// differences do no harm to a record, because of its fencing token.
	Skew time.Duration
}

// Store keeps records in etcd. Its methods may be called concurrently.
type Store struct {
	client *clientv3.Client
	prefix string
	skew   time.Duration
	clock  func() int64 // microseconds since 1970
}

// New returns a store over a client. It does not use the client yet: the first call returns
// an error of the server. The caller closes the client when the store is no longer used.
func New(client *clientv3.Client, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("semel/etcd: the client is nil")
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if len(o.Prefix) > 64 || strings.Contains(o.Prefix, "/") {
		return nil, fmt.Errorf("semel/etcd: Options.Prefix is %q: it may have at most 64 bytes and no slash", o.Prefix)
	}
	if o.Skew < 0 {
		return nil, fmt.Errorf("semel/etcd: Options.Skew is %v", o.Skew)
	}
	return &Store{client: client, prefix: o.Prefix + "/", skew: o.Skew, clock: processClock}, nil
}

// Capabilities reads the members of the cluster. With fewer than three voting members the
// records survive no more than a power loss.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return store.Capabilities{}, fmt.Errorf("read capabilities: %w", err)
	}
	voting := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voting++
		}
	}
	caps := store.Capabilities{
		Linearizable: true, Survives: store.Failover, Clock: store.ClientClocks, Ordered: true, ConcurrentSwaps: 2,
		MaxOutcome: maxOutcome, MaxBatch: maxBatch, MaxBytes: maxBytes,
	}
	if voting < failoverMembers {
		caps.Survives = store.PowerLoss
		caps.SurvivesBecause = fmt.Sprintf("the number of voting members of the cluster is %d, less than %d", voting, failoverMembers)
	}
	return caps, nil
}

// requestTimeout bounds a request. Without it the client would wait for as long as no member
// answers, and for longer than an election takes if the leader died with the request.
const requestTimeout = 5 * time.Second

// txn makes all operations with one request.
func (s *Store) txn(ctx context.Context, ops []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.client.Txn(ctx).Then(ops...).Commit() //nolint:wrapcheck // its callers wrap it
}

func (s *Store) get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.client.Get(ctx, key, o...) //nolint:wrapcheck // its callers wrap it
}

// processClock is the clock of a store, because etcd has none.
func processClock() int64 { return time.Now().UnixMicro() } //nolint:forbidigo // ClientClocks
