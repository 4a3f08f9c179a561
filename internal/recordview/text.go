// Package recordview has the parts of a record that programs for operators show: its
// scope, its times, its outcome and its attempts, without the callers' data unless that
// is to be revealed.
package recordview

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// HasDue reports whether records in state s have a Due.
func HasDue(s store.State) bool { return s == store.Pending || s == store.InProgress }

// ScopeParts returns the arguments of semel.ScopeOf for a stored scope; none
// for the shared scope. ok is false if ScopeOf did not make the scope.
func ScopeParts(stored string) (parts []string, ok bool) {
	if stored == semel.Shared().Bytes() {
		return nil, true
	}
	for rest := stored; rest != ""; {
		digits, tail, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || n > len(tail) {
			return nil, false
		}
		parts, rest = append(parts, tail[:n]), tail[n:]
	}
	return parts, semel.ScopeOf(parts...).Bytes() == stored
}

// Safe returns s for printing on a terminal: control characters and invisible
// characters are escaped.
func Safe(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// Ago formats d with its two largest units.
func Ago(d time.Duration) string {
	switch d = max(d, 0).Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// Scope formats the scope of r.
func Scope(r *store.Record) string {
	parts, ok := ScopeParts(r.Scope)
	switch {
	case !ok:
		return strconv.Quote(r.Scope)
	case parts == nil:
		return "shared"
	}
	for i, p := range parts {
		parts[i] = Safe(p)
	}
	return strings.Join(parts, " / ")
}
