package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dirs are the names of all labs' directories.
const dirs = "semel-bench-*"

// directory is a lab's own, locked as long as the lab's process lives.
type directory struct {
	path  string
	owner *os.File
}

// newDirectory makes one in base, and removes those that were left by who was killed.
func newDirectory(base string) (*directory, error) {
	left, _ := filepath.Glob(filepath.Join(base, dirs))
	for _, path := range left {
		if !isLabs(path) {
			continue
		}
		if d, err := lock(path); err == nil {
			_ = d.remove() // it is another's, perhaps
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
	// It has its name only when it is locked, so that nobody takes it for one that was left.
	d.path = filepath.Join(base, filepath.Base(path)[len("new-"):])
	if err := os.Rename(path, d.path); err != nil {
		return nil, fmt.Errorf("name directory: %w", err)
	}
	return d, nil
}

// isLabs tells a lab's directory from what people name likewise: a report, or a profile.
func isLabs(path string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(filepath.Base(path), strings.TrimSuffix(dirs, "*")), 10, 64)
	info, missing := os.Lstat(path)
	return err == nil && missing == nil && info.IsDir()
}

// lock fails where another process has the directory.
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
