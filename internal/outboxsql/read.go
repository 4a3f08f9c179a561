package outboxsql

import (
	"context"
	"strings"
	"time"

	"github.com/semelgo/semel/store"
)

// Table is the outbox of a store.
type Table[Tx any] struct {
	dialect Dialect
	pool    Pool
	in      func(tx Tx) Conn
}

// New returns the outbox whose reads use pool, and whose changes use the connection that
// in returns for a transaction.
func New[Tx any](d Dialect, pool Pool, in func(tx Tx) Conn) *Table[Tx] {
	return &Table[Tx]{d, pool, in}
}

// In returns the outbox within a transaction.
func (t *Table[Tx]) In(tx Tx) store.OutboxTx { return changes{&t.dialect, t.in(tx)} }

// Rows that were set aside have the lane -1 - lane. So they are not in the range of the
// index that is read for events.

// sqlLanes looks once into the index for each lane. SELECT DISTINCT would read all rows.
const sqlLanes = `WITH RECURSIVE lanes (lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM lanes WHERE lane < 63),
work (lane, has_events, redriving) AS (SELECT l.lane,
CASE WHEN EXISTS (SELECT 1 FROM semel_outbox o WHERE o.lane = l.lane) THEN 1 ELSE 0 END,
CASE WHEN EXISTS (SELECT 1 FROM semel_outbox_parked p WHERE p.lane = l.lane AND p.parking > 1) THEN 1 ELSE 0 END
FROM lanes l)
SELECT lane, has_events, redriving FROM work WHERE has_events = 1 OR redriving = 1`

// Lanes returns the lanes with work.
func (t *Table[Tx]) Lanes(ctx context.Context) (lanes []store.OutboxLane, err error) {
	err = t.pool.Query(ctx, func(scan func(dest ...any) error) error {
		var lane, events, redriving int64
		if err := scan(&lane, &events, &redriving); err != nil {
			return err
		}
		lanes = append(lanes, store.OutboxLane{Lane: int(lane), Events: events != 0, Redriving: redriving != 0})
		return nil
	}, t.dialect.text(sqlLanes))
	if err != nil {
		return nil, t.dialect.Fault("read the outbox's lanes", err)
	}
	return lanes, nil
}

// Head returns the first events of a lane.
func (t *Table[Tx]) Head(ctx context.Context, q store.OutboxHead) (events []store.OutboxEvent, err error) {
	text := `SELECT o.seq, ` + t.dialect.TextID + `, o.aggregatetype, o.aggregateid, o.type, o.payload, o.headers, o.failures, ` +
		strings.ReplaceAll(t.dialect.Age, "created", "o.created") + `, coalesce(p.parking, 0)
FROM semel_outbox o LEFT JOIN semel_outbox_parked p ON p.aggregatetype = o.aggregatetype AND p.aggregateid = o.aggregateid
WHERE o.lane = ?` + strings.Repeat(` AND NOT (o.aggregatetype = ? AND o.aggregateid = ?)`, len(q.Except)) + ` ORDER BY o.seq LIMIT ?`
	args := []any{int64(q.Lane)}
	for _, a := range q.Except {
		args = append(args, a[0], a[1])
	}
	err = t.pool.Query(ctx, func(scan func(dest ...any) error) error {
		e := store.OutboxEvent{Lane: q.Lane}
		var failures, age, parking int64
		if err := scan(&e.Seq, &e.ID, &e.Topic, &e.Aggregate, &e.Type, &e.Payload, &e.Headers, &failures, &age, &parking); err != nil {
			return err
		}
		e.Failures, e.Age, e.Parking = int(failures), micros(age), store.Parking(parking)
		events = append(events, e)
		return nil
	}, t.dialect.text(text), append(args, int64(q.Limit))...)
	if err != nil {
		return nil, t.dialect.Fault("read the outbox", err)
	}
	return events, nil
}

// Counts counts the events.
func (t *Table[Tx]) Counts(ctx context.Context) (c store.OutboxCounts, err error) {
	text := `SELECT coalesce(sum(CASE WHEN lane >= 0 THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN lane < 0 THEN 1 ELSE 0 END), 0),
coalesce(max(CASE WHEN lane >= 0 THEN ` + t.dialect.Age + ` END), 0), (SELECT count(*) FROM semel_outbox_parked) FROM semel_outbox`
	err = t.pool.Query(ctx, func(scan func(dest ...any) error) error {
		var age int64
		err := scan(&c.Events, &c.Parked, &age, &c.Aggregates)
		c.Oldest = micros(age)
		return err
	}, t.dialect.text(text))
	if err != nil {
		return c, t.dialect.Fault("count the outbox's events", err)
	}
	return c, nil
}

// ParkedAggregates lists parked aggregates.
func (t *Table[Tx]) ParkedAggregates(ctx context.Context, limit int) (all []store.ParkedAggregate, err error) {
	text := `SELECT p.lane, p.aggregatetype, p.aggregateid, p.seq, ` + strings.ReplaceAll(t.dialect.TextID, "o.", "p.") +
		`, p.type, p.failures, p.reason, p.parking, ` + strings.ReplaceAll(t.dialect.Age, "created", "p.created") + `,
(SELECT count(*) FROM semel_outbox o WHERE o.lane IN (p.lane, -1 - p.lane) AND o.aggregatetype = p.aggregatetype AND o.aggregateid = p.aggregateid)
FROM semel_outbox_parked p ORDER BY p.created, p.seq LIMIT ?`
	err = t.pool.Query(ctx, func(scan func(dest ...any) error) error {
		var p store.ParkedAggregate
		var lane, failures, parking, age int64
		err := scan(&lane, &p.Topic, &p.Aggregate, &p.Seq, &p.ID, &p.Type, &failures, &p.Reason, &parking, &age, &p.Events)
		p.Lane, p.Failures, p.Parking, p.Age = int(lane), int(failures), store.Parking(parking), micros(age)
		all = append(all, p)
		return err
	}, t.dialect.text(text), int64(limit))
	if err != nil {
		return nil, t.dialect.Fault("list parked aggregates", err)
	}
	return all, nil
}

func micros(n int64) time.Duration { return max(0, time.Duration(n)*time.Microsecond) }
