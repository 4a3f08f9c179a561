package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Salt returns the random bytes that the migration drew for this database. The view
// semel_record_view and the program semel show a scope or a key as the first twelve
// hexadecimal digits of the SHA-256 of the salt and the value. A role that may not write
// can read it, if SELECT on semel_salt is granted to it.
func (s *Store) Salt(ctx context.Context) (salt []byte, err error) {
	err = s.trip(ctx, "read the salt", frame{}, func(b *pgx.Batch, t *tables) {
		b.Queue(t.in(`SELECT salt FROM semel_salt`)).QueryRow(func(row pgx.Row) error { return row.Scan(&salt) })
	})
	return salt, err
}
