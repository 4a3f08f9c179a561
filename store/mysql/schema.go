package mysql

import (
	"embed"
	"io/fs"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// Schema returns the migrations, one plain SQL file each, sorted by name. Package
// migrate/mysql runs them; other tools can, too.
func Schema() fs.FS {
	sub, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return schemaFiles // cannot happen, because the name is valid
	}
	return sub
}
