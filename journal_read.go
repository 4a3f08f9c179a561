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
// counted from 1. Err is [io.ErrUnexpectedEOF] for a last line that was never
// finished, because of a crash or because it is just being written.
type JournalLineError struct {
	Line int
	Err  error
}

// Error names the line.
func (e *JournalLineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns why the line cannot be read.
func (e *JournalLineError) Unwrap() error { return e.Err }

// ReadFileJournal returns what the [FileJournal] at path keeps, in the order it
// was kept, and the lines that cannot be read. It changes nothing, so that the
// file may be another process's.
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

var errNoLine = errors.New("it neither keeps nor drops an entry")

// eachLine hands every line of the file at path to each, or what is wrong with
// it, until each returns an error.
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
			// Not the end: what follows is not to be taken for gone.
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

// readLine reads a line that is whole. One that says neither is from a program
// that knows more than this one.
func readLine(text []byte) (line journalLine, err error) {
	if err := json.Unmarshal(text, &line); err != nil {
		return line, err
	}
	if line.Keep == nil && line.Drop == nil {
		return line, errNoLine
	}
	return line, nil
}
