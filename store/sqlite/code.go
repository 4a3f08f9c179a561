package sqlite

import "github.com/semelgo/semel/internal/errtype"

// Result codes of SQLite. The lower eight bits are the primary code.
const (
	codeError        = 1
	codeBusy         = 5
	codeLocked       = 6
	codeTooBig       = 18
	codeConstraint   = 19
	codeBusySnapshot = codeBusy | 2<<8

	primary = 0xff
)

// coder is an error with SQLite's result code, such as that of the driver without
// cgo.
type coder interface {
	error
	Code() int
}

// codeOf returns the result code of a driver's error, extended if the driver has
// it, and zero if it is not known.
func codeOf(err error) int {
	if c, ok := errtype.Find[coder](err); ok {
		return c.Code()
	}
	return errtype.Field(err, "ExtendedCode", "Code") // of the driver with cgo
}

// IsBusy reports whether err, of a statement on a SQLite database, means that
// another connection held a lock, so that a retry may help. It knows the errors of
// the driver that Open uses and of the one with cgo.
func IsBusy(err error) bool {
	code := codeOf(err) & primary
	return code == codeBusy || code == codeLocked
}

// isRefusal reports whether one statement was refused and undone, and the
// transaction continues.
func isRefusal(err error) bool {
	code := codeOf(err) & primary
	return code == codeTooBig || code == codeConstraint
}

// leavesOpen lists the errors after which a COMMIT has certainly not happened, and
// the transaction can be rolled back: a missing lock, and a deferred constraint.
// After all other errors the outcome is unknown. Errors of writing and syncing are
// not in the list, because the whole commit may be in the log already, and a
// recovery may find it.
func leavesOpen(err error) bool {
	code := codeOf(err) & primary
	return code == codeBusy || code == codeLocked || code == codeConstraint
}
