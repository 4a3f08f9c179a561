package outboxsql

import (
	"context"
	"strings"

	"github.com/semelgo/semel/store"
)

// changes are the changes of one transaction.
type changes struct {
	dialect *Dialect
	conn    Conn
}

// maxRows and maxBytes limit one INSERT: the parameters of a statement, and the packet
// of MariaDB, are limited.
const (
	maxRows  = 100
	maxBytes = 4 << 20
)

// Append appends events. A statement with several rows numbers them in their order.
func (c changes) Append(ctx context.Context, events []store.OutboxEvent) error {
	for len(events) > 0 {
		n, bytes := 0, 0
		for n < len(events) && n < maxRows && (n == 0 || bytes+len(events[n].Payload) <= maxBytes) {
			bytes += len(events[n].Payload)
			n++
		}
		if err := c.insert(ctx, events[:n]); err != nil {
			return c.dialect.Fault("append to the outbox", err)
		}
		events = events[n:]
	}
	return nil
}

func (c changes) insert(ctx context.Context, events []store.OutboxEvent) error {
	row := `(` + c.dialect.ID + `, ?, ?, ?, ?, ?, ?, ` + c.dialect.Now + `)`
	text := `INSERT INTO semel_outbox (id, lane, aggregatetype, aggregateid, type, payload, headers, created) VALUES ` +
		row + strings.Repeat(`, `+row, len(events)-1)
	var args []any
	for i := range events {
		e := &events[i]
		args = append(args, e.ID, int64(e.Lane), e.Topic, e.Aggregate, e.Type, e.Payload, e.Headers)
	}
	_, err := c.conn.Exec(ctx, c.dialect.text(text), args...)
	return err
}

// Remove removes events that were published.
func (c changes) Remove(ctx context.Context, seqs []int64) error {
	return c.each(ctx, "remove from the outbox", `DELETE FROM semel_outbox WHERE seq IN `, seqs)
}

// Failed sets the number of failures of an event.
func (c changes) Failed(ctx context.Context, seq int64, failures int) error {
	if _, err := c.conn.Exec(ctx, c.dialect.text(`UPDATE semel_outbox SET failures = ? WHERE seq = ?`), int64(failures), seq); err != nil {
		return c.dialect.Fault("count a failure", err)
	}
	return nil
}

// SetAside moves events of parked aggregates out of the range that is read.
func (c changes) SetAside(ctx context.Context, seqs []int64) error {
	return c.each(ctx, "set events aside", `UPDATE semel_outbox SET lane = -1 - lane WHERE lane >= 0 AND seq IN `, seqs)
}

// each runs a statement for positions.
func (c changes) each(ctx context.Context, doing, text string, seqs []int64) error {
	for len(seqs) > 0 {
		n := min(len(seqs), maxRows)
		args := make([]any, n)
		for i, seq := range seqs[:n] {
			args[i] = seq
		}
		if _, err := c.conn.Exec(ctx, c.dialect.text(text+`(?`+strings.Repeat(`, ?`, n-1)+`)`), args...); err != nil {
			return c.dialect.Fault(doing, err)
		}
		seqs = seqs[n:]
	}
	return nil
}

// Park parks an aggregate.
func (c changes) Park(ctx context.Context, p store.ParkedAggregate) error {
	text := `INSERT INTO semel_outbox_parked (aggregatetype, aggregateid, lane, seq, id, type, failures, reason, parking, created)
VALUES (?, ?, ?, ?, ` + c.dialect.ID + `, ?, ?, ?, 1, ` + c.dialect.Now + `)` + c.dialect.OrNothing
	_, err := c.conn.Exec(ctx, c.dialect.text(text), p.Topic, p.Aggregate, int64(p.Lane), p.Seq, p.ID, p.Type, int64(p.Failures), p.Reason)
	if err != nil {
		return c.dialect.Fault("park an aggregate", err)
	}
	return nil
}

// Unpark ends the parking of the aggregates of a lane that an operator has redriven.
func (c changes) Unpark(ctx context.Context, lane int) error {
	var all []store.ParkedAggregate
	err := c.conn.Query(ctx, func(scan func(dest ...any) error) error {
		var p store.ParkedAggregate
		var parking int64
		err := scan(&p.Topic, &p.Aggregate, &p.Seq, &parking)
		p.Parking = store.Parking(parking)
		all = append(all, p)
		return err
	}, c.dialect.text(`SELECT aggregatetype, aggregateid, seq, parking FROM semel_outbox_parked WHERE lane = ? AND parking > 1`), int64(lane))
	for _, p := range all {
		if err == nil {
			err = c.unpark(ctx, lane, p)
		}
	}
	if err != nil {
		return c.dialect.Fault("redrive parked aggregates", err)
	}
	return nil
}

func (c changes) unpark(ctx context.Context, lane int, p store.ParkedAggregate) error {
	if p.Parking == store.Dropping {
		if _, err := c.conn.Exec(ctx, c.dialect.text(`DELETE FROM semel_outbox WHERE seq = ?`), p.Seq); err != nil {
			return err
		}
	}
	_, err := c.conn.Exec(ctx, c.dialect.text(`UPDATE semel_outbox SET lane = -1 - lane WHERE lane = ? AND aggregatetype = ? AND aggregateid = ?`),
		int64(-1-lane), p.Topic, p.Aggregate)
	if err != nil {
		return err
	}
	_, err = c.conn.Exec(ctx, c.dialect.text(`DELETE FROM semel_outbox_parked WHERE aggregatetype = ? AND aggregateid = ? AND parking > 1`),
		p.Topic, p.Aggregate)
	return err
}
