package engine

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

func recordOf(s store.SwapResult) store.Record {
	if s.Record == nil {
		return store.Record{}
	}
	return *s.Record
}

// recordAfter returns the record after change is applied.
func recordAfter(change store.Change, before store.Record) store.Record {
	r := change.To
	r.Since = 0
	if change.If != (store.Token{}) {
		r.Priority = before.Priority // written by the create, and never changed
	}
	if r.Input == nil {
		r.Input = before.Input
	}
	if r.Outcome == nil {
		r.Outcome = before.Outcome
	}
	return r
}

// publicRecord copies a record's bytes, which may be shared with the store, so that
// the caller may change them. It also seals the error.
func publicRecord(r store.Record, err error) (store.Record, error) {
	r.Input, r.Outcome = bytes.Clone(r.Input), bytes.Clone(r.Outcome)
	return r, callerr.Seal(err)
}

// swapTries is the number of tries before the store counts as unavailable.
const swapTries = 3

// newOwner returns a random number that no other write of a record has. It comes
// from the operating system, because a copy of this process, from a snapshot of a
// virtual machine for instance, would repeat the numbers of a generator in the
// process.
func newOwner() uint64 {
	var b [8]byte
	for {
		_, _ = crand.Read(b[:])                                                    // never fails
		if owner := binary.LittleEndian.Uint64(b[:]); owner >= protocol.MinOwner { // MarkOwner never makes it zero
			return owner
		}
	}
}
