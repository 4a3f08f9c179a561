package semelotel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// WatchOptions configure [Telemetry.Watch]. The zero value has good defaults.
type WatchOptions struct {
	// Every is the least time between two readings of the store; a collection in between
	// reports the last reading again. A reading counts all records, which takes 0.8 seconds
	// for two million on PostgreSQL. Zero: 30 seconds.
	Every time.Duration
	// Timeout limits a reading. Zero: 5 seconds.
	Timeout time.Duration
}

// Watch reports what the store of e holds: records by state, the depth and age of queues, dead
// letters, and the outbox. The store is read when the metrics are collected, so let one program
// for each store watch, such as its sweeper. Stop ends it.
//
// SQLite, PostgreSQL, MariaDB and the store in memory count their records. Other stores, such
// as Redis and etcd, cannot: of them only semel.watch.up is reported, and the record of each of
// the states Pending and InProgress that has been overdue for longest. Wrong options are a
// *semel.FieldError.
func (t *Telemetry) Watch(e semel.Runner, o WatchOptions) (stop func() error, err error) {
	switch {
	case o.Every < 0:
		return nil, &semel.FieldError{Field: "Every", Reason: "is negative: " + o.Every.String()}
	case o.Timeout < 0:
		return nil, &semel.FieldError{Field: "Timeout", Reason: "is negative: " + o.Timeout.String()}
	}
	if o.Every == 0 {
		o.Every = 30 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	m := &monitor{t: t, engine: e, options: o, outbox: adapter.OutboxReaderOf(e)}
	if err := m.gauges.open(t.meter, m.outbox != nil); err != nil {
		return nil, err
	}
	registration, err := t.meter.RegisterCallback(m.collect, m.gauges.all...)
	if err != nil {
		return nil, err
	}
	return registration.Unregister, nil
}

// monitor reports one store.
type monitor struct {
	t       *Telemetry
	engine  semel.Runner
	options WatchOptions
	outbox  store.OutboxReader // nil: none

	gauges gauges

	mu    sync.Mutex // guards the fields below; one collection reads while the others wait
	last  reading
	until time.Time
}

// gauges are the instruments of a monitor.
type gauges struct {
	up, records, overdue, deadLetters      metric.Int64ObservableGauge
	events, parkedAggregates, parkedEvents metric.Int64ObservableGauge
	queueAge, outboxAge                    metric.Float64ObservableGauge

	all []metric.Observable
}

// reading is what a store held at one time.
type reading struct {
	err    error
	counts []store.Count
	listed bool                     // the counts have only an Overdue of 1: the store cannot count
	ages   map[string]time.Duration // of the oldest due call, by operation
	outbox *store.OutboxCounts      // nil: none
}

func (g *gauges) open(meter metric.Meter, outbox bool) error {
	var failed error
	count := func(name, unit, description string) metric.Int64ObservableGauge {
		made, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed, g.all = errors.Join(failed, err), append(g.all, made)
		return made
	}
	age := func(name, description string) metric.Float64ObservableGauge {
		made, err := meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
		failed, g.all = errors.Join(failed, err), append(g.all, made)
		return made
	}
	g.up = count("semel.watch.up", "{store}", "1 if the last reading of the store succeeded, else 0.")
	g.records = count("semel.records", "{record}", "Records by operation and state.")
	g.overdue = count("semel.records.overdue", "{record}", "Pending records that are due, and InProgress records whose lease has expired.")
	g.deadLetters = count("semel.dead_letters", "{record}", "Tasks and messages that are not tried again until an operator redrives them.")
	g.queueAge = age("semel.queue.age", "Time for which the oldest due call of an operation has been waiting for a worker.")
	if outbox {
		g.events = count("semel.outbox.events", "{event}", "Events that wait for a relay, without those of parked aggregates.")
		g.outboxAge = age("semel.outbox.age", "Age of the oldest event that waits for a relay.")
		g.parkedAggregates = count("semel.outbox.parked.aggregates", "{aggregate}", "Aggregates whose events are not published, because one of them failed too often.")
		g.parkedEvents = count("semel.outbox.parked.events", "{event}", "Events of parked aggregates.")
	}
	return failed
}

// collect reports the last reading, or a new one if that is too old.
func (m *monitor) collect(ctx context.Context, o metric.Observer) error {
	r := m.reading(ctx)
	up := int64(1)
	if r.err != nil {
		up = 0
	}
	o.ObserveInt64(m.gauges.up, up, metric.WithAttributes(m.t.system...))
	if r.err != nil {
		return nil //nolint:nilerr // it was reported as an event
	}
	for _, c := range r.counts {
		in := m.of(c.Operation, attrState.String(stateName(c.State)))
		if !r.listed {
			o.ObserveInt64(m.gauges.records, c.Records, in)
		}
		switch c.State {
		case store.Pending:
			o.ObserveInt64(m.gauges.overdue, c.Overdue, in)
			o.ObserveFloat64(m.gauges.queueAge, r.ages[c.Operation].Seconds(), m.of(c.Operation))
		case store.InProgress:
			o.ObserveInt64(m.gauges.overdue, c.Overdue, in)
		case store.Failed, store.InDoubt:
			o.ObserveInt64(m.gauges.deadLetters, c.DeadLetters, in)
		case store.Absent, store.Succeeded:
		}
	}
	if r.outbox != nil {
		in := metric.WithAttributes(m.t.system...)
		o.ObserveInt64(m.gauges.events, r.outbox.Events, in)
		o.ObserveFloat64(m.gauges.outboxAge, r.outbox.Oldest.Seconds(), in)
		o.ObserveInt64(m.gauges.parkedAggregates, r.outbox.Aggregates, in)
		o.ObserveInt64(m.gauges.parkedEvents, r.outbox.Parked, in)
	}
	return nil
}

// of returns the attributes of a measurement about an operation.
func (m *monitor) of(operation string, more ...attribute.KeyValue) metric.MeasurementOption {
	attrs := append(slices.Clip(m.t.system), attrOperation.String(operation))
	return metric.WithAttributes(append(attrs, more...)...)
}

// reading returns what the store holds, or held a short time ago.
func (m *monitor) reading(ctx context.Context) reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.After(m.until) { //nolint:forbidigo // a time of this process only
		m.until = now.Add(m.options.Every)
		ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
		defer cancel()
		if m.last = m.read(ctx); m.last.err != nil {
			adapter.Report(ctx, m.engine, event.StoreError, store.Record{}, fmt.Errorf("read the store for metrics: %w", m.last.err))
		}
	}
	return m.last
}

func (m *monitor) read(ctx context.Context) (r reading) {
	r.counts, r.err = admin.Counts(ctx, m.engine)
	if r.listed = errors.Is(r.err, errors.ErrUnsupported); r.listed {
		r.counts, r.err = m.longestOverdue(ctx)
	}
	if r.err != nil {
		return r
	}
	r.ages = make(map[string]time.Duration)
	for _, c := range r.counts {
		if c.State != store.Pending || c.Overdue == 0 {
			continue
		}
		oldest, err := m.longestDue(ctx, store.Query{State: store.Pending, Operation: c.Operation}, isForWorkers)
		if err != nil {
			return reading{err: err}
		}
		if oldest != nil {
			r.ages[c.Operation] = -oldest.Due
		}
	}
	if m.outbox != nil {
		counts, err := m.outbox.Counts(ctx)
		if err != nil {
			return reading{err: err}
		}
		r.outbox = &counts
	}
	return r
}

// longestOverdue returns a count of 1 for the record of each state that has been overdue for
// longest. Stores find it in an index, however many records they hold.
func (m *monitor) longestOverdue(ctx context.Context) (counts []store.Count, err error) {
	for _, overdue := range []struct {
		state  store.State
		counts func(store.Record) bool
	}{
		{store.Pending, isForWorkers},
		{store.InProgress, func(store.Record) bool { return true }},
	} {
		oldest, err := m.longestDue(ctx, store.Query{State: overdue.state}, overdue.counts)
		if err != nil {
			return nil, err
		}
		if oldest != nil {
			counts = append(counts, store.Count{Operation: oldest.Operation, State: overdue.state, Overdue: 1})
		}
	}
	return counts, nil
}

// maxPassedOver limits the records that longestDue reads for nothing, such as one-time tokens.
const maxPassedOver = 20_000

// longestDue returns the wanted record of q that has been due for longest, or nil.
func (m *monitor) longestDue(ctx context.Context, q store.Query, wanted func(store.Record) bool) (*store.Record, error) {
	q.Due, q.Limit = true, 100
	for q.Skip < maxPassedOver {
		due, err := admin.List(ctx, m.engine, q)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(due, wanted); i >= 0 {
			return &due[i], nil
		}
		if len(due) < q.Limit {
			break
		}
		q.Skip, q.Limit = q.Skip+len(due), store.MaxLimit
	}
	return nil, nil //nolint:nilnil // no record is a result
}

// isForWorkers reports whether a Pending record waits for a worker. Such a record does not
// expire. A one-time token and a key that its caller may try again do.
func isForWorkers(r store.Record) bool { return r.Expire == 0 }

// stateName returns the name of a state as the program semel takes it.
func stateName(s store.State) string { return strings.ToLower(s.String()) }
