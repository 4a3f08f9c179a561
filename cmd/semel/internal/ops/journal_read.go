package ops

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/journal"
)

// readJournal reads the journal at path.
func readJournal(path string) ([]journal.Entry, []*journal.LineError, error) {
	entries, damaged, err := journal.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, nil, exit.Usagef("FILE: %w", err)
	case err != nil:
		return nil, nil, err
	}
	return entries, damaged, nil
}

// reportDamage reports the unreadable lines of the journal at path. An
// incomplete last line was never confirmed to its program, so it is not an
// error.
func reportDamage(stderr io.Writer, path string, damaged []*journal.LineError) error {
	unread := 0
	for _, d := range damaged {
		if errors.Is(d, io.ErrUnexpectedEOF) {
			fmt.Fprintf(stderr, "semel: %s: line %d is incomplete; it is skipped\n", path, d.Line)
			continue
		}
		unread++
		fmt.Fprintf(stderr, "semel: %s: %v\n", path, d)
	}
	if unread == 0 {
		return nil
	}
	return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("%s has %d unreadable lines; they stay in it", path, unread)}
}
