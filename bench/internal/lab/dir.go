package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dirs is the pattern of the directories' names.
const dirs = "semel-bench-*"

// directory is a lab's own directory. It is locked while the lab's process lives.
type directory struct {
	path  string
	owner *os.File
}

// newDirectory creates one in base, and removes those of killed processes.
func newDirectory(base string) (*directory, error) {
	left, _ := filepath.Glob(filepath.Join(base, dirs))
	for _, path := range left {
		if !isLabs(path) {
			continue
		}
		if d, err := lock(path); err == nil {
			_ = d.remove() // fails if another process has it
		}
	}
	path, err := os.MkdirTemp(base, "new-"+dirs)
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	d, err := lock(path)
	if err != nil {
		return nil, err
	}
	// It gets its name only after it is locked, so that no other process removes
	// it.
	d.path = filepath.Join(base, filepath.Base(path)[len("new-"):])
	if err := os.Rename(path, d.path); err != nil {
		return nil, fmt.Errorf("name directory: %w", err)
	}
	return d, nil
}

// isLabs reports whether a directory belongs to a lab, and is not a user's with a
// similar name.
func isLabs(path string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(filepath.Base(path), strings.TrimSuffix(dirs, "*")), 10, 64)
	info, missing := os.Lstat(path)
	return err == nil && missing == nil && info.IsDir()
}

// lock fails if another process holds the lock.
func lock(path string) (*directory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	return &directory{path, f}, nil
}

func (d *directory) remove() error {
	defer d.owner.Close()
	return os.RemoveAll(d.path)
}
