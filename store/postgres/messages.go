package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5"
)

// messages are what is said to the server in one trip.
type messages struct {
	bytes []byte
	raw   encoder
	asked int // statements
}

const (
	thePortal = 0 // the one without a name
	allRows   = 0
)

// keptAtMost is how much room is kept for the next trip.
const keptAtMost = 1 << 20

func (m *messages) reset() {
	if cap(m.bytes) > keptAtMost {
		m.bytes = nil
	}
	m.bytes, m.asked = m.bytes[:0], 0
}

// message appends a message of that type.
func (m *messages) message(of byte, write func()) {
	m.bytes = append(m.bytes, of)
	at := len(m.bytes)
	m.bytes = append(m.bytes, 0, 0, 0, 0)
	write()
	binary.BigEndian.PutUint32(m.bytes[at:], uint32(len(m.bytes)-at))
}

// execute has a prepared statement executed, with parameters and columns in binary.
func (m *messages) execute(name string, write func(r *encoder)) {
	const oneFormat, binaryFormat = 1, 1
	m.message('B', func() {
		m.bytes = append(append(append(m.bytes, thePortal), name...), 0)
		m.bytes = append(m.bytes, 0, oneFormat, 0, binaryFormat)
		at := len(m.bytes)
		// The parameters are written behind what is there.
		m.raw.bytes, m.raw.n = append(m.bytes, 0, 0), 0
		write(&m.raw)
		m.bytes, m.raw.bytes = m.raw.bytes, nil // kept nowhere else
		binary.BigEndian.PutUint16(m.bytes[at:], uint16(m.raw.n))
		m.bytes = append(m.bytes, 0, oneFormat, 0, binaryFormat)
	})
	m.run()
}

// executeAs is execute with parameters that the driver has written, and in its formats.
func (m *messages) executeAs(name string, of *pgx.ExtendedQueryBuilder) {
	m.message('B', func() {
		m.bytes = append(append(append(m.bytes, thePortal), name...), 0)
		m.formats(of.ParamFormats)
		m.bytes = binary.BigEndian.AppendUint16(m.bytes, uint16(len(of.ParamValues)))
		for _, v := range of.ParamValues {
			m.bytes = sized(m.bytes, func(b []byte) ([]byte, bool) { return append(b, v...), v == nil })
		}
		m.formats(of.ResultFormats)
	})
	m.run()
}

func (m *messages) run() {
	m.message('E', func() { m.bytes = append(m.bytes, thePortal, 0, 0, 0, allRows) })
	m.asked++
}

func (m *messages) formats(all []int16) {
	m.bytes = binary.BigEndian.AppendUint16(m.bytes, uint16(len(all)))
	for _, f := range all {
		m.bytes = binary.BigEndian.AppendUint16(m.bytes, uint16(f))
	}
}

// sync ends the trip: what comes before it is one transaction.
func (m *messages) sync() { m.message('S', func() {}) }
