package postgres

import "context"

// Salt returns the random bytes that the migration drew for this database. The view
// semel_record_view and the program semel show a scope or a key as the first twelve
// hexadecimal digits of the SHA-256 of the salt and the value. A role that may not write
// can read it, if SELECT on semel_salt is granted to it.
func (s *Store) Salt(ctx context.Context) ([]byte, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("read the salt", err)
	}
	var salt []byte
	if err := s.queryRow(ctx, []any{&salt}, t.in(`SELECT salt FROM semel_salt`)); err != nil {
		return nil, s.fault("read the salt", err)
	}
	return salt, nil
}
