package semel

import "github.com/semelgo/semel/internal/engine"

// Call is a call of an operation: a scope, a key and an input. Make it with
// [Operation.Call]. Its methods are Scope, Key, Operation, which is the name, and ID,
// the ID of its record, which may be logged. Bind is for adapters.
type Call = engine.Call

// Scope is the scope within which a key is unique: the principal, the tenant, the
// consumer group. Records are never shared across scopes. The zero Scope is an
// error, so that callers cannot share answers by mistake. Parts returns the arguments
// of [ScopeOf].
type Scope = engine.Scope

// ScopeOf returns the scope of a caller: a user ID, or a tenant and a user. Its
// parts are separated, so ScopeOf("a", "b") and ScopeOf("ab") are different scopes.
// No part, an empty part, or more than 1024 bytes in all is an error of the first
// call with the scope.
func ScopeOf(parts ...string) Scope {
	return engine.ScopeOf(parts...)
}

// Shared returns the scope of operations whose keys mean the same for every caller.
// Every caller that knows the key gets the stored answer.
func Shared() Scope {
	return engine.Shared()
}
