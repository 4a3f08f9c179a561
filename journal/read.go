package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// LineError is a line of a journal's file that cannot be read. Lines are
// counted from 1. Err is [io.ErrUnexpectedEOF] for an incomplete last line, after a
// crash or while it is being written.
type LineError struct {
	Line int
	Err  error
}

// Error returns the line number and the reason.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// Read returns the entries of the [File] at path, in the order in
// which they were written, and the lines that cannot be read. It changes nothing,
// so another process may be using the file.
func Read(path string) (entries []Entry, damaged []*LineError, err error) {
	j := newFile(path)
	err = eachLine(path, func(l line, damage *LineError) error {
		if damage != nil {
			damaged = append(damaged, damage)
			return nil
		}
		j.apply(l)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read journal: %w", err)
	}
	return j.entries(), damaged, nil
}

var errNoLine = errors.New("it has no known field")

// eachLine calls each with every line of a file, or with what is wrong with the
// line, until each returns an error.
func eachLine(path string, each func(l line, damage *LineError) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			// It is not the end of the file, so the following entries must not be
			// lost.
			return fmt.Errorf("line %d: %w", n, err)
		case err != nil && len(text) > 0:
			return each(line{}, &LineError{n, io.ErrUnexpectedEOF})
		case err != nil:
			return nil
		}
		l, damage := readLine(text)
		if damage != nil {
			err = each(l, &LineError{n, damage})
		} else {
			err = each(l, nil)
		}
		if err != nil {
			return err
		}
	}
}

// readLine decodes a complete line. A line without a known field comes from a newer
// program.
func readLine(text []byte) (l line, err error) {
	if err := json.Unmarshal(text, &l); err != nil {
		return l, err
	}
	if l.Keep == nil && l.Drop == nil {
		return l, errNoLine
	}
	return l, nil
}
