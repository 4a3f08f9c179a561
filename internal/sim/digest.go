package sim

import (
	"encoding/binary"
	"math/bits"
)

// digest is a running 64-bit hash. It depends on nothing but what was added, so
// that counts of states are the same on every machine.
type digest uint64

const (
	digestSeed digest = 0x2d358dccaa6c78a5
	digestOdd  uint64 = 0x8bb84b93962eacc9
)

func (d digest) add(x uint64) digest {
	hi, lo := bits.Mul64(uint64(d)^x, digestOdd)
	return digest(hi ^ lo ^ x<<32 ^ digestOdd)
}

func (d digest) flag(b bool) digest {
	if b {
		return d.add(1)
	}
	return d.add(2)
}

func (d digest) bytes(b []byte) digest {
	d = d.add(uint64(len(b)))
	for len(b) >= 8 {
		d, b = d.add(binary.LittleEndian.Uint64(b)), b[8:]
	}
	var pause [8]byte
	copy(pause[:], b)
	return d.add(binary.LittleEndian.Uint64(pause[:]))
}

func (d digest) text(s string) digest {
	d = d.add(uint64(len(s)))
	for len(s) > 0 {
		var part [8]byte
		s = s[copy(part[:], s):]
		d = d.add(binary.LittleEndian.Uint64(part[:]))
	}
	return d
}
