package sqlite

import "context"

// Salt returns the random bytes that the migration drew for this database. The program
// semel shows a scope or a key as the first twelve hexadecimal digits of the SHA-256 of
// the salt and the value.
func (s *Store) Salt(ctx context.Context) ([]byte, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, s.fault(ctx, "read the salt", err)
	}
	defer conn.Close()
	var salt []byte
	if err := conn.QueryRowContext(ctx, s.named(`SELECT salt FROM semel_salt`)).Scan(&salt); err != nil {
		return nil, s.fault(ctx, "read the salt", err)
	}
	return salt, nil
}
