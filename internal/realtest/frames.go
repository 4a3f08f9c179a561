package realtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Messages of PostgreSQL's protocol, version 3. Each is a letter, the length of
// the rest as four bytes that count themselves, and the rest; the first of a
// connection has no letter.
const (
	msgQuery    = 'Q'
	msgParse    = 'P'
	msgBind     = 'B'
	msgDescribe = 'D'
	msgExecute  = 'E'
	msgClose    = 'C'
	msgFlush    = 'H'
	msgSync     = 'S'
	msgCall     = 'F'
	msgKey      = 'K'
	msgReady    = 'Z'
)

// Codes in a first message in place of the protocol's version.
const (
	codeCancel = 80877102
	codeTLS    = 80877103
	codeGSS    = 80877104
)

// maxFrame is above the size of any message.
const maxFrame = 1 << 30

// request is what a client sends before it waits for a reply.
type request struct {
	bytes    []byte
	text     []byte // the statements it executes; see [Match]
	complete bool   // the connection ends with it
	answered bool   // the server ends its answer with "ready for query"
	cancels  string // the key of the connection whose request it would cancel
	stream   uint32 // its number, where replies come in any order; 0: replies come in the order of the requests
}

// replyFrame is one message of a server's reply.
type replyFrame struct {
	bytes []byte
	last  bool   // the reply ends with it
	more  bool   // the server has sent more with it
	key   string // with which the client can cancel a request

	stream uint32 // of the request that it answers; 0: none
}

// session follows what a client and a server say to each other on one
// connection. One goroutine reads the requests, and another the replies.
type session interface {
	// request reads up to the point where the client waits for a reply.
	request() (request, error)
	reply() (replyFrame, error)
}

// follow starts to follow a connection. Requests that need no server are answered to
// answer.
type follow func(client, server io.Reader, answer io.Writer) session

// postgresSession follows a connection of PostgreSQL's protocol.
type postgresSession struct {
	in     *bufio.Reader
	server *bufio.Reader
	answer io.Writer
	began  bool // the first message has been read

	text     []byte
	prepared map[string][]byte // SQL by the name of a statement
	portals  map[string][]byte // SQL by the name of a portal
}

func followPostgres(client, server io.Reader, answer io.Writer) session {
	return &postgresSession{
		in: bufio.NewReader(client), server: bufio.NewReader(server), answer: answer,
		prepared: make(map[string][]byte), portals: make(map[string][]byte),
	}
}

// reply reads the next message of the server.
func (r *postgresSession) reply() (replyFrame, error) {
	frame, err := readFrame(r.server)
	if err != nil {
		return replyFrame{}, err
	}
	f := replyFrame{bytes: frame, last: frame[0] == msgReady, more: r.server.Buffered() > 0}
	if frame[0] == msgKey {
		f.key = string(frame[5:])
	}
	return f, nil
}

func (r *postgresSession) request() (request, error) {
	if !r.began {
		return r.first()
	}
	var raw []byte
	for {
		frame, err := readFrame(r.in)
		if err != nil {
			return request{}, err
		}
		raw = append(raw, frame...)
		r.note(frame[0], frame[5:])
		switch frame[0] {
		case msgParse, msgBind, msgDescribe, msgExecute, msgClose:
		case msgFlush:
			return request{bytes: raw}, nil
		default:
			text := r.text
			r.text = nil
			answered := frame[0] == msgQuery || frame[0] == msgSync || frame[0] == msgCall
			return request{bytes: raw, text: text, complete: answered, answered: answered}, nil
		}
	}
}

// first reads the message that opens a connection. Encryption is declined here.
func (r *postgresSession) first() (request, error) {
	for {
		raw, err := readBody(r.in, nil)
		if err != nil {
			return request{}, err
		}
		var code uint32
		if len(raw) >= 8 {
			code = binary.BigEndian.Uint32(raw[4:])
		}
		if code == codeTLS || code == codeGSS {
			if _, err := r.answer.Write([]byte{'N'}); err != nil {
				return request{}, fmt.Errorf("decline encryption: %w", err)
			}
			continue
		}
		r.began = true
		if code == codeCancel {
			return request{bytes: raw, cancels: string(raw[8:])}, nil
		}
		return request{bytes: raw, answered: true}, nil
	}
}

// note records what a message prepares, and what it executes.
func (r *postgresSession) note(letter byte, body []byte) {
	name, rest := cstring(body)
	switch letter {
	case msgQuery:
		r.execute(name)
	case msgParse: // name, SQL
		sql, _ := cstring(rest)
		r.prepared[string(name)] = sql
	case msgBind: // portal, name
		statement, _ := cstring(rest)
		sql, ok := r.prepared[string(statement)]
		if !ok {
			sql = statement
		}
		r.portals[string(name)] = sql
	case msgExecute: // portal
		r.execute(r.portals[string(name)])
	}
}

func (r *postgresSession) execute(sql []byte) {
	r.text = append(append(r.text, sql...), ";\n"...)
}

// readFrame reads one message with its letter.
func readFrame(in *bufio.Reader) ([]byte, error) {
	letter, err := in.ReadByte()
	if err != nil {
		return nil, err
	}
	return readBody(in, []byte{letter})
}

// readBody appends a message's length and body to head.
func readBody(in *bufio.Reader, head []byte) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, fmt.Errorf("read length: %w", err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < 4 || n > maxFrame {
		return nil, fmt.Errorf("a message has %d bytes", n)
	}
	head = append(head, length[:]...)
	frame := append(head, make([]byte, n-4)...)
	if _, err := io.ReadFull(in, frame[len(head):]); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return frame, nil
}

// cstring returns the text before the first zero byte, and the rest.
func cstring(b []byte) (s, rest []byte) {
	s, rest, _ = bytes.Cut(b, []byte{0})
	return s, rest
}
