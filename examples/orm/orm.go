// Package orm places an order with GORM, ent, bun, sqlx and sqlc. Each of them writes the rows
// of the order in the transaction that semel.DoTx begins, so that the rows and the record
// of the key commit together. See docs/recipes/orm.md.
package orm

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/semelgo/semel"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// Schema creates the tables of the shop.
//
//go:embed schema.sql
var Schema string

// NewOrder is the request.
type NewOrder struct {
	Item   string `json:"item"`
	Amount int32  `json:"amount"`
}

// Order is the result, and the row that GORM, bun and sqlx write.
type Order struct {
	ID     int64  `json:"id" bun:",pk,autoincrement"`
	Item   string `json:"item"`
	Amount int32  `json:"amount"`
}

// ErrUnknownItem is a final answer: a retry with the same key receives it again.
var ErrUnknownItem = errors.New("unknown item")

// Open returns the shop's database, and an engine whose records are in it.
func Open(ctx context.Context, url string, o semel.Options) (*sql.DB, *semel.Engine[*sql.Tx], error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(10)
	engine, err := newEngine(ctx, db, o)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, engine, nil
}

func newEngine(ctx context.Context, db *sql.DB, o semel.Options) (*semel.Engine[*sql.Tx], error) {
	if err := pgmigrate.UpSQL(ctx, db, pgmigrate.Options{}); err != nil {
		return nil, fmt.Errorf("create the tables of Semel: %w", err)
	}
	records, err := postgres.NewSQL(db, postgres.Options{})
	if err != nil {
		return nil, err
	}
	return semel.New(records, o)
}

// Insert writes the rows of an order in tx and returns its ID. It returns ErrUnknownItem
// if no stock has the item.
type Insert func(ctx context.Context, tx *sql.Tx, in NewOrder) (id int64, err error)

// Place places the order once for each key.
func Place(ctx context.Context, engine *semel.Engine[*sql.Tx], key string, in NewOrder, insert Insert) (order Order, replayed bool, err error) {
	place := semel.Define("place_order", semel.OperationOptions[NewOrder]{})
	return semel.DoTx(ctx, engine, place.Call(semel.ScopeOf("shop"), key, in), func(ctx context.Context, tx *sql.Tx) (Order, error) {
		id, err := insert(ctx, tx, in)
		if errors.Is(err, ErrUnknownItem) {
			return Order{}, semel.Final(err)
		}
		return Order{ID: id, Item: in.Item, Amount: in.Amount}, err
	})
}
