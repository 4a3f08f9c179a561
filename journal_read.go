package semel

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// JournalLineError is a line of a journal's file that cannot be read. Lines are
// counted from 1. Err is [io.ErrUnexpectedEOF] for an incomplete last line, after a
// crash or while it is being written.
type JournalLineError struct {
	Line int
	Err  error
}

// Error returns the line number and the reason.
func (e *JournalLineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *JournalLineError) Unwrap() error { return e.Err }

// ReadFileJournal returns the entries of the [FileJournal] at path, in the order in
// which they were written, and the lines that cannot be read. It changes nothing,
// so another process may be using the file.
func ReadFileJournal(path string) (entries []JournalEntry, damaged []*JournalLineError, err error) {
	var order []journalKey
	j := &FileJournal{kept: make(map[journalKey]JournalEntry)}
	err = eachLine(path, func(line journalLine, damage *JournalLineError) error {
		if damage != nil {
			damaged = append(damaged, damage)
			return nil
		}
		if line.Keep != nil {
			order = append(order, line.Keep.key())
		}
		j.apply(line)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read journal: %w", err)
	}
	for _, k := range order {
		if e, ok := j.kept[k]; ok {
			entries = append(entries, e)
			delete(j.kept, k)
		}
	}
	return entries, damaged, nil
}

var errNoLine = errors.New("it has no known field")

// eachLine calls each with every line of a file, or with what is wrong with the
// line, until each returns an error.
func eachLine(path string, each func(line journalLine, damage *JournalLineError) error) error {
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
			return each(journalLine{}, &JournalLineError{n, io.ErrUnexpectedEOF})
		case err != nil:
			return nil
		}
		line, damage := readLine(text)
		if damage != nil {
			err = each(line, &JournalLineError{n, damage})
		} else {
			err = each(line, nil)
		}
		if err != nil {
			return err
		}
	}
}

// readLine decodes a complete line. A line without a known field comes from a newer
// program.
func readLine(text []byte) (line journalLine, err error) {
	if err := json.Unmarshal(text, &line); err != nil {
		return line, err
	}
	if line.Keep == nil && line.Drop == nil {
		return line, errNoLine
	}
	return line, nil
}
