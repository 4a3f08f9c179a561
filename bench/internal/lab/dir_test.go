package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/bench/internal/lab"
)

// TestWhatAKilledLabHasLeftTheNextOneRemoves, and nothing of one that lives.
func TestWhatAKilledLabHasLeftTheNextOneRemoves(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left := filepath.Join(os.TempDir(), "semel-bench-123")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "large.db"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := open(t, true)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what was left is there still: %v", err)
	}
	second := open(t, true)
	for _, l := range []*lab.Lab{first, second} {
		if _, err := os.Stat(l.Dir()); err != nil {
			t.Errorf("the directory of one that lives: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// TestWhatIsOnlyNamedLikeALabsIsLeftAlone: what a person keeps of a run.
func TestWhatIsOnlyNamedLikeALabsIsLeftAlone(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var kept []string
	for _, name := range []string{"semel-bench-1.log", "semel-bench-2", "semel-bench-before/latest.json"} {
		path := filepath.Join(os.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, path)
	}
	if err := open(t, true).Close(); err != nil {
		t.Error(err)
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it has been removed: %v", err)
		}
	}
}
