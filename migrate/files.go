package migrate

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/semelgo/semel/internal/sqlname"
)

// migration is one file.
type migration struct {
	version    int64
	name       string
	statements []string
}

// readFiles reads the migrations in their order.
func readFiles(files fs.FS, prefix string) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version < 1 {
			return nil, fmt.Errorf("the name of the file %s does not begin with a positive number and _", name)
		}
		if n := len(all); n > 0 && version <= all[n-1].version {
			return nil, fmt.Errorf("the file %s comes after %s and has no greater number", name, all[n-1].name)
		}
		all = append(all, migration{version, name, splitStatements(sqlname.Rename(string(text), prefix))})
	}
	return all, nil
}

// after returns the migrations with a number greater than version.
func after(all []migration, version int64) []migration {
	for i := range all {
		if all[i].version > version {
			return all[i:]
		}
	}
	return nil
}

// splitStatements splits the text of a file, because not every driver runs several
// statements at once. It drops empty lines and comments between statements.
func splitStatements(text string) []string {
	var all []string
	var statement strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if statement.Len() == 0 && (trimmed == "" || strings.HasPrefix(trimmed, "--")) {
			continue
		}
		statement.WriteString(line)
		if strings.HasSuffix(trimmed, ";") {
			all = append(all, statement.String())
			statement.Reset()
		}
	}
	if statement.Len() > 0 {
		all = append(all, statement.String())
	}
	return all
}
