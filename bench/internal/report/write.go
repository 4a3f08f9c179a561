package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/machine"
)

// Write writes all results into files of dir: latest.json for programs, latest.md
// for readers, and the charts.
func Write(dir string, l *lab.Lab, m machine.Machine, results []goal.Result) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	all := map[string]func(io.Writer) error{
		"latest.json": func(w io.Writer) error { return JSON(w, results) },
		"latest.md":   func(w io.Writer) error { return Page(w, l.Quick, m, results) },
	}
	for name, c := range Charts(l) {
		all[name] = c.Draw
	}
	for name, write := range all {
		if err := file(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	return nil
}

// file replaces a file as a whole, or keeps the old one after an error.
func file(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path + ".new")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
