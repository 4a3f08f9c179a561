// Package schema describes the tables of the shop to ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Order is a row of the table orders.
type Order struct{ ent.Schema }

// Fields implements ent.Interface.
func (Order) Fields() []ent.Field {
	return []ent.Field{field.Int64("id"), field.String("item"), field.Int32("amount")}
}
