package realtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// streamSession follows a connection of gRPC, which is HTTP/2 without TLS. Its streams are
// answered in any order, so requests and replies have the number of their stream.
type streamSession struct {
	client, server *frameReader
	began          bool
	texts          map[uint32][]byte // of requests that are not complete
}

// frameReader reads the frames of one side, and keeps their bytes.
type frameReader struct {
	in    *bufio.Reader
	raw   bytes.Buffer
	frame *http2.Framer
}

func newFrameReader(in io.Reader) *frameReader {
	s := &frameReader{in: bufio.NewReader(in)}
	s.frame = http2.NewFramer(nil, io.TeeReader(s.in, &s.raw))
	s.frame.SetMaxReadFrameSize(1<<24 - 1)
	return s
}

// next returns the next frame, and its bytes.
func (s *frameReader) next() (http2.Frame, []byte, error) {
	s.raw.Reset()
	f, err := s.frame.ReadFrame()
	if err != nil {
		return nil, nil, fmt.Errorf("read frame: %w", err)
	}
	return f, bytes.Clone(s.raw.Bytes()), nil
}

func followHTTP2(client, server io.Reader, _ io.Writer) session {
	s := &streamSession{client: newFrameReader(client), server: newFrameReader(server), texts: make(map[uint32][]byte)}
	s.client.frame.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return s
}

// request reads the next frame. The last frame of a stream completes the request, whose text
// is the path, a blank and the body.
func (s *streamSession) request() (request, error) {
	if !s.began {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(s.client.in, preface); err != nil {
			return request{}, fmt.Errorf("read preface: %w", err)
		}
		s.began = true
		return request{bytes: preface}, nil
	}
	frame, raw, err := s.client.next()
	if err != nil {
		return request{}, err
	}
	r, stream := request{bytes: raw}, frame.Header().StreamID
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		s.texts[stream] = append([]byte(f.PseudoValue("path")), ' ')
		r.complete = f.StreamEnded()
	case *http2.DataFrame:
		s.texts[stream] = append(s.texts[stream], f.Data()...)
		r.complete = f.StreamEnded()
	case *http2.RSTStreamFrame:
		delete(s.texts, stream)
	}
	if r.complete {
		r.text, r.stream = s.texts[stream], stream
		delete(s.texts, stream)
	}
	return r, nil
}

// reply reads the next frame. The last frame of a stream ends a reply.
func (s *streamSession) reply() (replyFrame, error) {
	frame, raw, err := s.server.next()
	if err != nil {
		return replyFrame{}, err
	}
	r := replyFrame{bytes: raw, more: s.server.in.Buffered() > 0, stream: frame.Header().StreamID}
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		r.last = f.StreamEnded()
	case *http2.DataFrame:
		r.last = f.StreamEnded()
	case *http2.RSTStreamFrame:
		r.last = true
	}
	return r, nil
}
