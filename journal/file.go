package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/semelgo/semel/store"
)

// File is a [Journal] in a file of JSON lines. Each write is synced to the
// disk. Only one process may use a file at a time.
type File struct {
	mu    sync.Mutex
	path  string
	kept  map[key]Entry
	line  map[key]int // the number of the line that first kept an entry, for their order
	lines int
	torn  bool // the last line may be incomplete
}

type key struct {
	ID    store.ID
	Token store.Token
}

func keyOf(e *Entry) key { return key{e.Record.ID, e.Record.Token} }

// line is a stored entry, or the key of a dropped one.
type line struct {
	Keep *Entry `json:",omitempty"`
	Drop *key   `json:",omitempty"`
}

// Open opens the journal at path, or creates it, and rewrites it without
// dropped entries. It ignores an incomplete last line, which a crash can leave; any
// other damage is an error.
func Open(path string) (*File, error) {
	j := newFile(path)
	if err := j.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if err := j.compact(); err != nil {
		return nil, fmt.Errorf("rewrite journal: %w", err)
	}
	return j, nil
}

func newFile(path string) *File {
	return &File{path: path, kept: make(map[key]Entry), line: make(map[key]int)}
}

func (j *File) read() error {
	return eachLine(j.path, func(l line, damage *LineError) error {
		switch {
		case damage == nil:
			j.apply(l)
		case !errors.Is(damage, io.ErrUnexpectedEOF):
			return damage
		}
		return nil
	})
}

func (j *File) apply(l line) {
	if l.Keep != nil {
		k := keyOf(l.Keep)
		if _, again := j.kept[k]; !again {
			j.lines++
			j.line[k] = j.lines
		}
		j.kept[k] = *l.Keep
	}
	if l.Drop != nil {
		delete(j.kept, *l.Drop)
		delete(j.line, *l.Drop)
	}
}

// entries returns the kept entries in the order in which they were written.
func (j *File) entries() []Entry {
	keys := slices.SortedFunc(maps.Keys(j.kept), func(a, b key) int { return cmp.Compare(j.line[a], j.line[b]) })
	entries := make([]Entry, 0, len(keys))
	for _, k := range keys {
		entries = append(entries, j.kept[k])
	}
	return entries
}

func (j *File) compact() error {
	temporary := j.path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range j.entries() {
		if err := appendLine(temporary, line{Keep: &e}); err != nil {
			return err
		}
	}
	if len(j.kept) == 0 {
		if err := os.WriteFile(temporary, nil, 0o600); err != nil {
			return err
		}
	}
	if err := os.Rename(temporary, j.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.path))
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func appendLine(path string, l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(append(text, '\n'))
	return errors.Join(werr, f.Sync(), f.Close())
}

// Keep implements [Journal].
func (j *File) Keep(e Entry) error { return j.write(line{Keep: &e}) }

// Drop implements [Journal].
func (j *File) Drop(id store.ID, token store.Token) error {
	return j.write(line{Drop: &key{id, token}})
}

func (j *File) write(l line) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn {
		// After an incomplete line, a new one could not be read.
		if err := j.compact(); err != nil {
			return err
		}
		j.torn = false
	}
	if err := appendLine(j.path, l); err != nil {
		j.torn = true
		return err
	}
	j.apply(l)
	return nil
}

// Entries implements [Journal].
func (j *File) Entries() ([]Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries(), nil
}
