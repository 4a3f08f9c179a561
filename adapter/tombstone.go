package adapter

import "github.com/semelgo/semel/internal/codec"

// Tombstone is the result of an operation that succeeded and whose result cannot be
// returned again, because it was streamed for instance. Its text is the reason.
// Retries get [semel.ErrResultUnavailable].
type Tombstone = codec.Tombstone
