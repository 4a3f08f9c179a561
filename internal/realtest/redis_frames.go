package realtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// redisSession follows a connection of Redis's protocol (RESP). A client may send the next
// command before it has the reply to the last one.
type redisSession struct{ client, server *bufio.Reader }

func followRedis(client, server io.Reader, _ io.Writer) session {
	return &redisSession{bufio.NewReader(client), bufio.NewReader(server)}
}

// request reads the next command. Its text has the arguments with a blank between them.
func (s *redisSession) request() (request, error) {
	raw, words, err := readRESP(s.client, nil, nil)
	if err != nil {
		return request{}, err
	}
	return request{bytes: raw, text: append(bytes.Join(words, []byte(" ")), ";\n"...), complete: true, answered: true}, nil
}

// reply reads the next reply. A message that the server sends by itself is not the end of
// one.
func (s *redisSession) reply() (replyFrame, error) {
	raw, _, err := readRESP(s.server, nil, nil)
	if err != nil {
		return replyFrame{}, err
	}
	return replyFrame{bytes: raw, last: raw[0] != '>', more: s.server.Buffered() > 0}, nil
}

// readRESP appends the bytes of the next value to raw, and the strings in it to words.
func readRESP(in *bufio.Reader, raw []byte, words [][]byte) ([]byte, [][]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, nil, fmt.Errorf("read value: %w", err)
	}
	raw = append(raw, line...)
	if len(line) < 3 {
		return nil, nil, fmt.Errorf("a value begins with %q", line)
	}
	n := 0
	switch line[0] {
	case '$', '=', '!', '*', '~', '>', '%', '|':
		if n, err = strconv.Atoi(string(line[1 : len(line)-2])); err != nil {
			return nil, nil, fmt.Errorf("read length: %w", err)
		}
	}
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, words, nil
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, nil, fmt.Errorf("read string: %w", err)
		}
		return append(raw, text...), append(words, text[:n]), nil
	case '%', '|':
		n *= 2
	}
	if line[0] == '|' { // attributes come before the value itself
		n++
	}
	for range n {
		if raw, words, err = readRESP(in, raw, words); err != nil {
			return nil, nil, err
		}
	}
	return raw, words, nil
}
