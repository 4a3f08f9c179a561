package ops

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semelgo/semel/store"
)

// safe returns s for printing on a terminal: control characters and invisible
// characters are escaped.
func safe(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// ago formats d with its two largest units.
func ago(d time.Duration) string {
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

// dueOf formats when r may be claimed or taken over.
func dueOf(r *store.Record) string {
	switch {
	case !hasDue(r.State):
		return "-"
	case r.Due > 0:
		return "in " + ago(r.Due)
	default:
		return "overdue " + ago(-r.Due)
	}
}

// expiresOf formats when r may be purged.
func expiresOf(r *store.Record) string {
	switch {
	case r.Expire == 0:
		return "never"
	case r.Expire > 0:
		return "in " + ago(r.Expire)
	default:
		return ago(-r.Expire) + " ago: semel purge removes it"
	}
}

// scopeOf formats the scope of r.
func scopeOf(r *store.Record) string {
	parts, ok := scopeParts(r.Scope)
	switch {
	case !ok:
		return strconv.Quote(r.Scope)
	case parts == nil:
		return "shared"
	}
	for i, p := range parts {
		parts[i] = safe(p)
	}
	return strings.Join(parts, " / ")
}

// keyOf formats the key of r.
func keyOf(r *store.Record) string { return safe(r.Key) }

// line returns v as a line for people.
func (v *outcomeView) line() string {
	switch v.Kind {
	case kindFailure:
		text := "failure"
		if v.Code != "" {
			text += " " + safe(v.Code)
		}
		if len(v.Details) > 0 {
			text += ", details " + safe(string(v.Details))
		}
		if v.Message != "" {
			text += ": " + safe(v.Message)
		}
		return text
	case kindUnavailable:
		return "the result is not available: " + safe(v.Reason)
	case kindNone, kindProgress:
		return "none"
	}
	text := fmt.Sprintf("%s, %d bytes", v.Kind, v.Bytes)
	switch {
	case v.JSON != nil:
		text += ": " + safe(string(v.JSON))
	case v.Base64 != nil:
		text += ": " + strconv.Quote(string(v.Base64))
	}
	return text
}
