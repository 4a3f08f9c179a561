// Package check has the comparisons that tests repeat. Each one points at the line of its
// caller, and its message shows the value that the test got and the one that it wants.
package check

import (
	"errors"
	"fmt"
	"testing"
)

// Must returns the value of a call, and ends the test if the call failed:
// db := check.Must(sqlite.Open(path))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		Require(tb, err)
		return value
	}
}

// Require ends the test if err is an error. What says what failed: a format and its values.
func Require(tb testing.TB, err error, what ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatal(prefix(what) + err.Error())
	}
}

// NoError reports an error, and the test goes on.
func NoError(tb testing.TB, err error, what ...any) {
	tb.Helper()
	if err != nil {
		tb.Error(prefix(what) + err.Error())
	}
}

// Fails reports that a call returned no error.
func Fails(tb testing.TB, err error, what string, args ...any) {
	tb.Helper()
	if err == nil {
		tb.Errorf("%s: no error, want one", fmt.Sprintf(what, args...))
	}
}

// Err returns the error of a call and drops its value: check.Fails(t, check.Err(parse("x")), "parse").
func Err[T any](_ T, err error) error { return err }

// ErrorIs reports an error that is not target.
func ErrorIs(tb testing.TB, err, target error, what string, args ...any) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("%s: got error %v, want %v", fmt.Sprintf(what, args...), err, target)
	}
}

// Equal reports a value that is not the wanted one.
func Equal[T comparable](tb testing.TB, got, want T, what string, args ...any) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %s, want %s", fmt.Sprintf(what, args...), show(got), show(want))
	}
}

// NoDiff reports a difference that cmp.Diff has found:
// check.NoDiff(t, cmp.Diff(want, got), "the record").
func NoDiff(tb testing.TB, diff, what string, args ...any) {
	tb.Helper()
	if diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprintf(what, args...), diff)
	}
}

// Result reports that a call failed or returned another value than the wanted one:
// check.Result(s.Purge(ctx, 10))(t, 0, "Purge").
func Result[T comparable](got T, err error) func(tb testing.TB, want T, what string, args ...any) {
	return func(tb testing.TB, want T, what string, args ...any) {
		tb.Helper()
		if got != want || err != nil {
			tb.Errorf("%s: got %s, error %v, want %s", fmt.Sprintf(what, args...), show(got), err, show(want))
		}
	}
}

// ResultIs reports that a call returned another value than the wanted one, or an error that is
// not target.
func ResultIs[T comparable](got T, err error) func(tb testing.TB, want T, target error, what string, args ...any) {
	return func(tb testing.TB, want T, target error, what string, args ...any) {
		tb.Helper()
		if got != want || !errors.Is(err, target) {
			tb.Errorf("%s: got %s, error %v, want %s, error %v", fmt.Sprintf(what, args...), show(got), err, show(want), target)
		}
	}
}

func prefix(what []any) string {
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf(what[0].(string), what[1:]...) + ": "
}

// show quotes text, so that spaces and empty texts are visible.
func show(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%+v", v)
}
