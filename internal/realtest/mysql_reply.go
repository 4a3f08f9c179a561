package realtest

import (
	"encoding/binary"
	"fmt"
)

// replyState is what the next packet of a reply is.
type replyState int

const (
	atGreeting replyState = iota // the server's first packet on a connection
	atLogin                      // a packet about the login
	atFirst                      // the first packet of a result
	atSkipped                    // a description of a column or of a parameter
	atRow                        // a row, or the end of the rows
)

// replyParser finds the last packet of a reply in MySQL's protocol.
type replyParser struct {
	state    replyState
	prepares bool // the reply is to the preparation of a statement
	eof      bool // a packet ends the descriptions
	cached   bool // the count of columns says whether descriptions follow
	skip     int  // packets with descriptions, and their ends
}

// end takes the next packet of the reply, and reports whether it is the last.
func (p *replyParser) end(payload []byte) (bool, error) {
	if len(payload) == 0 {
		return false, fmt.Errorf("a packet of a reply is empty in state %d", p.state)
	}
	kind := payload[0]
	if kind == packetErr && p.state != atSkipped {
		return true, nil
	}
	switch p.state {
	case atGreeting:
		p.state = atLogin
		return false, nil
	case atLogin:
		return kind == packetOK, nil
	case atFirst:
		return p.first(kind, payload)
	case atSkipped:
		p.skip--
		if p.skip > 0 {
			return false, nil
		}
		p.state = atRow
		return p.prepares, nil
	case atRow:
		if kind != packetEOF || len(payload) >= maxPacket {
			return false, nil // a row
		}
		return p.result(p.status(payload)), nil
	}
	return false, fmt.Errorf("there is no state %d", p.state)
}

func (p *replyParser) first(kind byte, payload []byte) (bool, error) {
	switch {
	case kind == packetOK && p.prepares:
		if len(payload) < 9 {
			return false, fmt.Errorf("the reply to a preparation has %d bytes", len(payload))
		}
		p.describe(int(binary.LittleEndian.Uint16(payload[5:])))
		p.describe(int(binary.LittleEndian.Uint16(payload[7:])))
		return p.skip == 0, nil
	case kind == packetOK:
		return p.result(statusOfOK(payload)), nil
	case kind == packetEOF: // the reply to some commands
		return true, nil
	}
	columns, rest := lengthEncoded(payload)
	if p.cached && len(rest) > 0 && rest[0] == 0 {
		columns = 0
		if p.eof {
			p.skip++
		}
	}
	p.describe(columns)
	if p.skip == 0 {
		p.state = atRow
	}
	return false, nil
}

// describe expects n descriptions.
func (p *replyParser) describe(n int) {
	if n == 0 {
		return
	}
	p.state = atSkipped
	p.skip += n
	if p.eof {
		p.skip++
	}
}

// status returns the status in the packet that ends the rows.
func (p *replyParser) status(payload []byte) uint16 {
	if !p.eof {
		return statusOfOK(payload)
	}
	if len(payload) < 5 {
		return 0
	}
	return binary.LittleEndian.Uint16(payload[3:])
}

// result reports whether a result with that status is the reply's last.
func (p *replyParser) result(status uint16) bool {
	p.state = atFirst
	return status&statusMoreResults == 0
}

// statusOfOK returns the status after the two numbers of an OK packet.
func statusOfOK(payload []byte) uint16 {
	rest := payload[1:]
	for range 2 {
		_, rest = lengthEncoded(rest)
	}
	if len(rest) < 2 {
		return 0
	}
	return binary.LittleEndian.Uint16(rest)
}

// lengthEncoded reads a number whose first byte gives its length.
func lengthEncoded(b []byte) (n int, rest []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	size := map[byte]int{0xfc: 2, 0xfd: 3, 0xfe: 8}[b[0]]
	if size == 0 {
		return int(b[0]), b[1:]
	}
	if len(b) <= size {
		return 0, nil
	}
	for i := size; i > 0; i-- {
		n = n<<8 | int(b[i])
	}
	return n, b[1+size:]
}
