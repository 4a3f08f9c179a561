package admin

import (
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// ChildKey returns the key that [semel.ChildKey] with that name gives to a downstream call
// of r's operation, in every attempt. An operator looks for the effect of a record in doubt
// by this key in the other system. `semel show --child` prints it.
func ChildKey(r store.Record, name string) string { return engine.ChildKeyOf(r, name) }
