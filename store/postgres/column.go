package postgres

import "github.com/jackc/pgx/v5/pgtype"

// A column is an array parameter that is read off the changes while it is written,
// instead of being built before. pgx asks for one element after the other, and
// writes each before it asks for the next, so the column stands for the element too.
//
// A query mode in which pgx goes by the Go types of parameters knows nothing of
// columns: there plain ones take their place.
type column struct {
	items []*item
	at    int
}

// Dimensions says that it is a list of the changes' length.
func (c *column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c.items)), LowerBound: 1}}
}

func (c *column) item() *item { return c.items[c.at] }

// columnOf is a column of the fields that write appends.
func columnOf(items []*item, write func(buf []byte, it *item) []byte) *bytesColumn {
	return &bytesColumn{column: column{items: items}, buf: make([]byte, 0, 64), write: write}
}

// idColumn has the IDs.
type idColumn struct{ column }

// Index goes to an element.
func (c *idColumn) Index(i int) any { c.at = i; return c }

// IndexType is what an element is.
func (c *idColumn) IndexType() any { return c }

// UUIDValue is the element.
func (c *idColumn) UUIDValue() (pgtype.UUID, error) { return uuid(c.item().To.ID), nil }

func (c *idColumn) plainly() any {
	return plain(c.items, func(it *item) pgtype.UUID { return uuid(it.To.ID) })
}

// ownerColumn has the owners that are to stand.
type ownerColumn struct{ column }

// Index goes to an element.
func (c *ownerColumn) Index(i int) any { c.at = i; return c }

// IndexType is what an element is.
func (c *ownerColumn) IndexType() any { return c }

// Int64Value is the element.
func (c *ownerColumn) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: owner(c.item()), Valid: true}, nil
}

func (c *ownerColumn) plainly() any { return plain(c.items, owner) }

func owner(it *item) int64 { return int64(it.To.Owner) }

// bytesColumn has one of the fields that are bytes, which write appends.
type bytesColumn struct {
	column

	buf   []byte // never nil, which would be null
	write func(buf []byte, it *item) []byte
}

// Index goes to an element.
func (c *bytesColumn) Index(i int) any { c.at = i; return c }

// IndexType is what an element is.
func (c *bytesColumn) IndexType() any { return c }

// BytesValue is the element, until the next one is asked for.
func (c *bytesColumn) BytesValue() ([]byte, error) {
	c.buf = c.write(c.buf[:0], c.item())
	return c.buf, nil
}

func (c *bytesColumn) plainly() any {
	return plain(c.items, func(it *item) []byte { return c.write([]byte{}, it) })
}

func plain[T any](items []*item, of func(*item) T) []T {
	all := make([]T, len(items))
	for i, it := range items {
		all[i] = of(it)
	}
	return all
}

func scopeOf(buf []byte, it *item) []byte   { return append(buf, it.To.Scope...) }
func keyOf(buf []byte, it *item) []byte     { return append(buf, it.To.Key...) }
func outcomeOf(buf []byte, it *item) []byte { return append(buf, it.To.Outcome...) }

func fingerprintOf(buf []byte, it *item) []byte { return append(buf, it.To.Fingerprint...) }
