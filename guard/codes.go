package guard

import (
	"slices"

	"github.com/semelgo/semel/internal/errtype"
)

// Codes of errors. PostgreSQL's are texts, those of SQLite are extended result codes.
const (
	pgUnique = "23505"

	mysqlDuplicate     = 1062
	mysqlDuplicateName = 1586

	sqliteUnique     = 2067
	sqlitePrimaryKey = 1555
	sqliteRowID      = 2579
)

// codeOf returns the code of a driver's error: its SQLSTATE on PostgreSQL, else a
// number. It recognizes errors by their methods, or else by their fields, so
// that a program compiles only the driver that it uses.
func codeOf(err error) (state string, number int) {
	if e, ok := errtype.Find[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState(), 0
	}
	if e, ok := errtype.Find[interface {
		error
		Code() int
	}](err); ok {
		return "", e.Code()
	}
	return "", errtype.Field(err, "Number", "ExtendedCode", "Code")
}

// isUnique reports whether err is the violation of a unique index.
func isUnique(err error) bool {
	state, number := codeOf(err)
	return state == pgUnique ||
		slices.Contains([]int{mysqlDuplicate, mysqlDuplicateName, sqliteUnique, sqlitePrimaryKey, sqliteRowID}, number)
}
