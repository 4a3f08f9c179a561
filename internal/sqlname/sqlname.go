// Package sqlname checks the names that a user may choose for the tables, and puts
// them into SQL.
package sqlname

import (
	"fmt"
	"regexp"
	"strings"
)

// DefaultPrefix begins the name of every table, index and view in the SQL of a store.
const DefaultPrefix = "semel_"

// maxPrefix leaves room for the longest names: PostgreSQL cuts a name after 63 bytes.
const (
	maxPrefix = 30
	maxSchema = 63
)

var valid = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Prefix returns prefix, or the default if it is empty. It fails, with the name of
// the field, if a table cannot have that prefix.
func Prefix(field, prefix string) (string, error) {
	if prefix == "" {
		return DefaultPrefix, nil
	}
	return prefix, check(field, prefix, maxPrefix)
}

// CheckSchema fails, with the name of the field, if a schema cannot have that name.
// An empty name is valid.
func CheckSchema(field, schema string) error {
	if schema == "" {
		return nil
	}
	if strings.HasPrefix(schema, "pg_") {
		return fmt.Errorf("%s is %q: PostgreSQL reserves the names that begin with pg_", field, schema)
	}
	return check(field, schema, maxSchema)
}

func check(field, name string, longest int) error {
	switch {
	case len(name) > longest:
		return fmt.Errorf("%s has %d characters, of which %d are allowed", field, len(name), longest)
	case !valid.MatchString(name):
		return fmt.Errorf("%s is %q: it may have lower-case letters, digits and _, and no digit first", field, name)
	}
	return nil
}

// Rename returns the SQL with prefix instead of the default prefix.
func Rename(sql, prefix string) string {
	return strings.ReplaceAll(sql, DefaultPrefix, prefix)
}
