package mysql

import "context"

// Salt returns the random bytes that the migration drew for this database. The program
// semel and the view semel_record_view show a scope or a key as the first twelve
// hexadecimal digits of the SHA-256 of the salt and the value.
func (s *Store) Salt(ctx context.Context) ([]byte, error) {
	rows, err := s.own.QueryContext(ctx, `SELECT salt FROM semel_salt`)
	if err != nil {
		return nil, fault("read the salt", err)
	}
	defer rows.Close()
	var salt []byte
	for rows.Next() {
		if err := rows.Scan(&salt); err != nil {
			return nil, fault("read the salt", err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fault("read the salt", err)
	}
	return salt, nil
}
