package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// ChildKey returns the key for a downstream call of the operation: the same in
// every attempt, and different for every name, key, scope and operation. It has 32
// hexadecimal digits and does not reveal the operation's key.
//
// HTTP clients may send a request twice by themselves: Go's net/http repeats a POST
// that failed on a reused connection if its header has an Idempotency-Key or an
// X-Idempotency-Key. If the receiver does not deduplicate by that header, one
// attempt then has two effects, also under [Hold]. Send the key in another header
// or field to such a receiver, or set http.Request.GetBody to nil, so that net/http
// does not repeat a request with a body.
func (a *Attempt) ChildKey(name string) string { return ChildKeyOf(a.call.identity(), name) }

// ChildKeyOf returns the key that [ChildKey] gives to the calls of r's attempts.
func ChildKeyOf(r store.Record, name string) string {
	h := sha256.New()
	for _, part := range [...]string{"child", r.Operation, r.Scope, r.Key, name} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ChildKey returns the key for a downstream call of the operation of ctx, leased or
// inline: see [Attempt.ChildKey].
func ChildKey(ctx context.Context, name string) (string, error) {
	if c, ok := ctx.Value(callKey{}).(Call); ok {
		return ChildKeyOf(c.identity(), name), nil
	}
	return "", callerr.Invalid("ctx", "does not belong to an operation")
}
