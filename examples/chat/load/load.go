// Package load sends messages to chat servers with many clients that lose their
// connections, and verifies what each client has seen in the end. It uses the public
// API only.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options says how much to send, and where.
type Options struct {
	// Servers are base URLs, such as http://127.0.0.1:8080. A client that reconnects
	// chooses one at random. All of them use one database.
	Servers []string
	// Clients is the number of connections. The clients share Accounts accounts, as
	// devices of their users. Zero: 100 clients, and an account for each four of them,
	// at most 100.
	Clients, Accounts int
	// Groups is the number of groups. Each account is a member of two, or of one if there
	// is one. Zero: one for each 10 accounts, at least 1.
	Groups int
	// Messages is how many messages are sent in all, and Rate how many per second. Zero:
	// 1000 messages, 100 per second.
	Messages int
	Rate     float64
	// Drop is the mean time after which a client drops its connection and reconnects.
	// Zero: 10 s. Negative: never.
	Drop time.Duration
	// Patience is how long the clients may need after the last message to have a complete
	// view. Zero: 1 min.
	Patience time.Duration
	// Progress receives a line per second. Nil: none.
	Progress io.Writer
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Servers) == 0 {
		return o, errors.New("load: no server is named")
	}
	for _, field := range []struct {
		name  string
		value float64
	}{
		{"Clients", float64(o.Clients)},
		{"Accounts", float64(o.Accounts)},
		{"Groups", float64(o.Groups)},
		{"Messages", float64(o.Messages)},
		{"Rate", o.Rate},
		{"Patience", float64(o.Patience)},
	} {
		if field.value < 0 {
			return o, fmt.Errorf("load: %s is negative", field.name)
		}
	}
	orElse(&o.Clients, 100)
	orElse(&o.Accounts, max(2, min(100, o.Clients/4)))
	orElse(&o.Groups, max(1, o.Accounts/10))
	orElse(&o.Messages, 1000)
	orElse(&o.Rate, 100)
	orElse(&o.Drop, 10*time.Second)
	orElse(&o.Patience, time.Minute)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o, nil
}

func orElse[T int | float64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// run is one run of the generator.
type run struct {
	Options

	api      *api
	accounts []*account
	groups   []string
	clients  []*device
	target   map[string]int64 // the last change of each group after sending

	acknowledged atomic.Int64
	delivered    atomic.Int64
}

// Run creates accounts and groups, sends the messages, and verifies the result. The
// error joins everything that is wrong; the report is complete if err is nil or a
// [*ViolationError].
func Run(ctx context.Context, o Options) (Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Report{}, err
	}
	r := &run{Options: o, api: newAPI(o.Servers)}
	if err := r.prepare(ctx); err != nil {
		return Report{}, fmt.Errorf("load: prepare: %w", err)
	}
	start := time.Now()
	if err := r.send(ctx); err != nil {
		return Report{}, fmt.Errorf("load: %w", err)
	}
	report := r.report(time.Since(start))
	if err := r.verify(ctx, &report); err != nil {
		return report, err
	}
	return report, nil
}

// prepare signs up the accounts, and creates the groups.
func (r *run) prepare(ctx context.Context) error {
	_, _ = fmt.Fprintf(r.Progress, "load: %d accounts, %d groups\n", r.Accounts, r.Groups)
	r.accounts = make([]*account, r.Accounts)
	err := each(ctx, r.Accounts, 4, func(ctx context.Context, i int) (err error) {
		r.accounts[i], err = r.api.signUp(ctx)
		return err
	})
	if err != nil {
		return err
	}
	r.groups = make([]string, r.Groups)
	err = each(ctx, r.Groups, 4, func(ctx context.Context, i int) (err error) {
		members := r.membersOf(i)
		r.groups[i], err = r.api.createGroup(ctx, members[0], fmt.Sprintf("load %d", i), members[1:])
		return err
	})
	if err != nil {
		return err
	}
	for i, group := range r.groups {
		for _, a := range r.membersOf(i) {
			a.groups = append(a.groups, group)
		}
	}
	return nil
}

// membersOf returns the accounts in the i-th group: each account is in two groups.
func (r *run) membersOf(i int) []*account {
	var members []*account
	for k, a := range r.accounts {
		if k%r.Groups == i || (k+1)%r.Groups == i {
			members = append(members, a)
		}
	}
	return members
}

// send starts the clients, waits until all messages are acknowledged and all views are
// complete, and stops the clients.
func (r *run) send(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i := range r.Clients {
		c := newDevice(r, r.accounts[i%r.Accounts])
		r.clients = append(r.clients, c)
		running.Go(func() { c.run(ctx) })
	}
	running.Go(func() { r.showProgress(ctx) })
	pace := time.NewTicker(time.Duration(float64(time.Second) / r.Rate))
	defer pace.Stop()
	for i := range r.Messages {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pace.C:
		}
		c := r.clients[rand.IntN(len(r.clients))]
		c.submit(c.account.groups[rand.IntN(len(c.account.groups))], i)
	}
	return r.settle(ctx)
}

// settle waits until all messages are acknowledged, and until each client's views have
// everything that the groups have by then.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	for _, c := range r.clients {
		if err := c.allSent(ctx); err != nil {
			return err
		}
	}
	r.target = map[string]int64{}
	for i, group := range r.groups {
		var err error
		if r.target[group], err = r.api.lastChange(ctx, r.membersOf(i)[0], group); err != nil {
			return err
		}
	}
	for _, c := range r.clients {
		if err := c.finish(ctx, r.target); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) showProgress(ctx context.Context) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			_, _ = fmt.Fprintf(r.Progress, "load: %d of %d messages acknowledged, %d deliveries\n",
				r.acknowledged.Load(), r.Messages, r.delivered.Load())
		}
	}
}

// each calls fn for 0 … n-1, at most width at a time, and returns the first error.
func each(ctx context.Context, n, width int, fn func(context.Context, int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	var next atomic.Int64
	for range min(width, n) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := fn(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// report summarizes what the clients measured.
func (r *run) report(took time.Duration) Report {
	report := Report{
		Clients: r.Clients, Accounts: r.Accounts, Groups: r.Groups, Messages: r.Messages, Took: took,
		Deliveries: int(r.delivered.Load()),
	}
	var latencies []time.Duration
	for _, c := range r.clients {
		latencies = append(latencies, c.latencies...)
		report.Reconnects += c.reconnects
		for _, v := range c.views {
			report.Gaps += v.gaps
			report.Ignored += v.ignored
		}
	}
	slices.Sort(latencies)
	report.P50, report.P99 = quantile(latencies, 0.50), quantile(latencies, 0.99)
	return report
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
