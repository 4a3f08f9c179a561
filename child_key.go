package semel

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// ChildKey returns the key for a call that the operation makes downstream: the
// same in every attempt, different for every name, key, scope and operation,
// 32 hexadecimal digits. It tells the receiver nothing about the key.
//
// Clients of HTTP may send a request twice by themselves: Go's net/http repeats a POST
// that failed on a reused connection when its header has an Idempotency-Key or an
// X-Idempotency-Key. If the
// receiver does not deduplicate by that header, one attempt has two effects then, also
// under [Hold]. Send the key in another header or field to such a receiver, or set
// http.Request.GetBody to nil, which keeps net/http from repeating a request with a body.
func (a *Attempt) ChildKey(name string) string { return a.call.childKey(name) }

func (c *Call) childKey(name string) string {
	h := sha256.New()
	for _, part := range [...]string{"child", c.op.name, c.scope.text, c.key, name} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ChildKey is [Attempt.ChildKey] of the operation that ctx runs in, leased or
// inline. Without one it is ErrInvalid, never a random key: that would protect
// nothing.
func ChildKey(ctx context.Context, name string) (string, error) {
	if c, ok := ctx.Value(callKey{}).(Call); ok {
		return c.childKey(name), nil
	}
	return "", invalid("ctx", "does not belong to an operation")
}
