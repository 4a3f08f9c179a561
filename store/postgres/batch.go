package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// sender sends statements at once and waits for all replies.
type sender interface {
	send(ctx context.Context, b *pgx.Batch) error
}

// trip sends the statements that queue adds, within the frame, at once. Without an
// error all of them were executed, and outside of a transaction committed.
func trip(ctx context.Context, in sender, f frame, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	for _, text := range f.before {
		b.Queue(text)
	}
	queue(b)
	for _, text := range f.after {
		b.Queue(text)
	}
	return in.send(ctx, b)
}

// lookup selects the records to read.
type lookup struct {
	ids []store.ID
	// confirmed: a standby must have the records that are final, or whose token has one
	// of the owners, before they are shown.
	confirmed bool
	owners    []int64
}

// get reads the current records, in the order of the lookup.
func get(ctx context.Context, in sender, t *tables, f frame, of lookup) ([]store.SwapResult, error) {
	ids := of.ids
	text, args := t.getMany, []any{uuids(ids)}
	if of.confirmed {
		text, args = t.getConfirmed, append(args, of.owners)
	}
	found := make(map[store.ID]*store.Record, len(ids))
	err := trip(ctx, in, f, func(b *pgx.Batch) {
		b.Queue(text, args...).Query(eachRecord(func(r *store.Record) { found[r.ID] = r }))
	})
	if err != nil {
		return nil, err
	}
	answers := make([]store.SwapResult, len(ids))
	for i, id := range ids {
		if r := found[id]; r != nil {
			answers[i] = store.SwapResult{Token: r.Token, Record: r}
		}
	}
	return answers, nil
}

// eachRecord reads the records of a result.
func eachRecord(use func(*store.Record)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all := newReader()
		for rows.Next() {
			r, err := all.read(rows)
			if err != nil {
				return err
			}
			use(r)
		}
		return rows.Err()
	}
}

// eachID reads the IDs of a result.
func eachID(use func(store.ID)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var id pgtype.UUID
			if err := rows.Scan(&id); err != nil {
				return fmt.Errorf("read a row: %w", err)
			}
			use(id.Bytes)
		}
		return rows.Err()
	}
}
