package engine

import (
	"strconv"
	"strings"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// Scope is the scope within which a key is unique: the principal, the tenant, the
// consumer group.
type Scope struct {
	text string
}

// sharedScope differs from every ScopeOf, whose text begins with a digit.
const sharedScope = "*"

// ScopeOf returns the scope of a caller: a user ID, or a tenant and a user.
func ScopeOf(parts ...string) Scope {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			return Scope{}
		}
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return Scope{text: b.String()}
}

// Shared returns the scope of operations whose keys mean the same for every caller.
func Shared() Scope { return Scope{text: sharedScope} }

// Parts returns the arguments of [ScopeOf], or nil for Shared and the zero Scope.
func (s Scope) Parts() []string {
	var parts []string
	rest := s.text
	for rest != "" {
		digits, tail, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n > len(tail) {
			return nil
		}
		parts, rest = append(parts, tail[:n]), tail[n:]
	}
	return parts
}

// Bytes returns the scope as stores keep it.
func (s Scope) Bytes() string { return s.text }

func (s Scope) valid() error {
	if s.text == "" {
		return callerr.Invalid("Scope", "is required, and no part of it may be empty; use Shared() for keys that all callers share")
	}
	if len(s.text) > store.MaxScope {
		return callerr.Invalid("Scope", "is longer than "+strconv.Itoa(store.MaxScope)+" bytes")
	}
	return nil
}
