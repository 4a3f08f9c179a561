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
	sub, _ := fs.Sub(schemaFiles, "schema") // the name is valid
	return sub
}
