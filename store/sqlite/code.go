package sqlite

import (
	"errors"
	"reflect"
)

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

// coder is an error that tells SQLite's result code, as that of the driver
// without cgo does.
type coder interface {
	error
	Code() int
}

// codeOf returns the result code of a driver's error, extended where the driver
// has it, and zero when it cannot be told.
func codeOf(err error) int {
	if c, ok := errors.AsType[coder](err); ok {
		return c.Code()
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if code := codeByShape(err); code != 0 {
			return code
		}
	}
	return 0
}

// codeByShape reads the code of drivers whose errors have fields, of types of
// their own, as the one with cgo has it.
func codeByShape(err error) int {
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() != reflect.Struct {
		return 0
	}
	for _, name := range [...]string{"ExtendedCode", "Code"} {
		switch f := v.FieldByName(name); {
		case f.IsValid() && f.CanInt() && f.Int() != 0:
			return int(f.Int())
		case f.IsValid() && f.CanUint() && f.Uint() != 0:
			return int(f.Uint())
		}
	}
	return 0
}

// IsBusy reports whether err, of a statement on a SQLite database, says that
// somebody else's lock was in the way, so that trying again may help. It knows
// the errors of the driver that Open uses and of the one with cgo.
func IsBusy(err error) bool {
	code := codeOf(err) & primary
	return code == codeBusy || code == codeLocked
}

// isRefusal says that one statement was refused and undone, and the transaction
// goes on.
func isRefusal(err error) bool {
	code := codeOf(err) & primary
	return code == codeTooBig || code == codeConstraint
}

// leavesOpen lists the errors after which a COMMIT has certainly not happened,
// and the transaction is still there to be rolled back: a lock that was not to
// be had, and a deferred constraint. Everything else stays unknown. An error of
// writing or syncing is not on the list, because the whole of the commit may be
// in the log already, for a recovery to find.
func leavesOpen(err error) bool {
	code := codeOf(err) & primary
	return code == codeBusy || code == codeLocked || code == codeConstraint
}
