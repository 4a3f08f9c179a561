package engine

import (
	crand "crypto/rand"
	"encoding/binary"

	"github.com/semelgo/semel/internal/protocol"
)

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
