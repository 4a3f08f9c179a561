package realtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Commands of MySQL's protocol that this package tells apart: they carry SQL, or the
// server does not reply to them.
const (
	comQuit     = 0x01
	comQuery    = 0x03
	comPrepare  = 0x16
	comExecute  = 0x17
	comLongData = 0x18
	comClose    = 0x19
)

// First bytes of a reply's packets.
const (
	packetOK  = 0x00
	packetEOF = 0xfe
	packetErr = 0xff
)

// Capabilities that a client declares. MariaDB's own are valid without clientMySQL.
const (
	clientMySQL         = 1 << 0
	clientDeprecateEOF  = 1 << 24
	clientCacheMetadata = 1 << 4 // of MariaDB's own
)

// statusMoreResults is set in the status of a result that another one follows.
const statusMoreResults = 0x0008

// maxPacket is the payload of a packet that another packet continues.
const maxPacket = 1<<24 - 1

// mysqlPacket is a packet, or several that continue each other.
type mysqlPacket struct {
	raw      []byte // with the headers
	payload  []byte
	sequence byte // 0: it is a command
}

func readPacket(in *bufio.Reader) (mysqlPacket, error) {
	var p mysqlPacket
	for first := true; ; first = false {
		var header [4]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return p, fmt.Errorf("read header: %w", err)
		}
		n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		part := make([]byte, n)
		if _, err := io.ReadFull(in, part); err != nil {
			return p, fmt.Errorf("read packet: %w", err)
		}
		if first {
			p.sequence = header[3]
		}
		p.raw = append(append(p.raw, header[:]...), part...)
		p.payload = append(p.payload, part...)
		if n < maxPacket {
			return p, nil
		}
	}
}

// mysqlSession follows a connection of MySQL's protocol. A client sends one
// command at a time, so the reader of requests tells the reader of replies which
// command the next reply is for.
type mysqlSession struct {
	client *bufio.Reader
	server *bufio.Reader

	mu       sync.Mutex
	caps     uint32
	extended uint32
	prepared map[uint32][]byte // SQL by the number of a statement
	text     []byte            // SQL of the current command
	parser   replyParser
}

func followMySQL(client, server io.Reader, _ io.Writer) session {
	return &mysqlSession{
		client: bufio.NewReader(client), server: bufio.NewReader(server), prepared: make(map[uint32][]byte),
		// The server speaks first; its greeting belongs to the reply to the login.
		parser: replyParser{state: atGreeting},
	}
}

// request reads the next packet of the client.
func (c *mysqlSession) request() (request, error) {
	p, err := readPacket(c.client)
	if err != nil {
		return request{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.sequence != 0: // it logs in: capabilities, then what the server's method needs
		login := c.caps == 0
		if login && len(p.payload) >= 32 {
			c.caps = binary.LittleEndian.Uint32(p.payload)
			c.extended = binary.LittleEndian.Uint32(p.payload[28:])
		}
		return request{bytes: p.raw, answered: login}, nil
	case len(p.payload) == 0:
		return request{}, errors.New("a command is empty")
	}
	return c.command(p), nil
}

func (c *mysqlSession) command(p mysqlPacket) request {
	command, rest := p.payload[0], p.payload[1:]
	switch command {
	case comQuit, comLongData:
		return request{bytes: p.raw}
	case comClose:
		if len(rest) >= 4 {
			delete(c.prepared, binary.LittleEndian.Uint32(rest))
		}
		return request{bytes: p.raw}
	}
	c.parser = replyParser{
		state: atFirst, prepares: command == comPrepare, eof: c.caps&clientDeprecateEOF == 0,
		cached: c.caps&clientMySQL == 0 && c.extended&clientCacheMetadata != 0,
	}
	c.text = nil
	var executed []byte
	switch {
	case command == comQuery:
		executed = rest
	case command == comPrepare:
		c.text = rest
	case command == comExecute && len(rest) >= 4:
		executed = c.prepared[binary.LittleEndian.Uint32(rest)]
	}
	if executed != nil {
		executed = append(slices.Clip(executed), ";\n"...)
	}
	return request{bytes: p.raw, text: executed, complete: true, answered: true}
}

// reply reads the next packet of the server.
func (c *mysqlSession) reply() (replyFrame, error) {
	p, err := readPacket(c.server)
	if err != nil {
		return replyFrame{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parser.prepares && c.parser.state == atFirst && len(p.payload) >= 9 && p.payload[0] == packetOK {
		c.prepared[binary.LittleEndian.Uint32(p.payload[1:])] = c.text
	}
	last, err := c.parser.end(p.payload)
	return replyFrame{bytes: p.raw, last: last, more: c.server.Buffered() > 0}, err
}
