// Package etcd measures Semel on etcd against two plain requests, with the same client on the
// same member.
package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/etcd"
)

// callers is the number of callers at the same time.
const callers = 64

// Experiments returns the experiments on etcd.
func Experiments() []lab.Experiment {
	naive := goal.AtLeast("etcd of three members on one machine, throughput of Do at 64 callers, against put-if-absent and put", "x", 3, 3)
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		members, err := realtest.StartDurableEtcd(ctx, 3)
		if err != nil {
			return nil, err
		}
		var urls []string
		var used []usage.Server
		for _, m := range members {
			l.Closing(m.Close)
			urls, used = append(urls, m.URL()), append(used, usage.Tree(m.PID()))
		}
		client, err := realtest.NewEtcdClient(urls...)
		if err != nil {
			return nil, err
		}
		l.Closing(client.Close)
		s, err := etcd.New(client, etcd.Options{})
		if err != nil {
			return nil, err
		}
		engine, err := semel.NewRunner(s, semel.Options{})
		if err != nil {
			return nil, err
		}
		l.Closing(func() error { return engine.Close(context.Background()) })
		c := contest.Contest{
			Name: "etcd, callers: 64", Callers: callers, Server: usage.Sum(used...),
			Before: func(ctx context.Context, _ string) error { return empty(ctx, client) },
			Sides:  []contest.Side{{Name: "naive", Do: plain(client)}, {Name: "Do", Do: payment.Do(engine)}},
		}
		o, err := c.Run(ctx, l)
		if err != nil {
			return nil, err
		}
		return []goal.Finding{o.Faster(naive, "Do", "naive")}, nil
	}
	return []lab.Experiment{{Name: "etcd", Rows: []goal.Row{naive}, Run: run}}
}

// empty removes all keys and what is kept of them, so that no side pays for another's.
func empty(ctx context.Context, client *clientv3.Client) error {
	removed, err := client.Delete(ctx, "", clientv3.WithPrefix())
	if err == nil {
		_, err = client.Compact(ctx, removed.Header.Revision, clientv3.WithCompactPhysical())
	}
	for _, member := range client.Endpoints() {
		if err == nil {
			_, err = client.Defragment(ctx, member)
		}
	}
	if err != nil {
		return fmt.Errorf("empty etcd: %w", err)
	}
	return nil
}

// plain claims and completes by two requests. A caller that stops for a while overwrites the
// result of its successor.
func plain(client *clientv3.Client) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		key := payment.Scope(c.N) + ":" + c.Key()
		claim, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, "")).Commit()
		if err == nil && !claim.Succeeded {
			err = errors.New("the key exists")
		}
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if _, err := client.Put(ctx, key, string(payment.Result())); err != nil {
			return fmt.Errorf("complete: %w", err)
		}
		return nil
	}
}
