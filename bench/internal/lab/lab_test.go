package lab_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/bench/internal/lab"
)

func open(t *testing.T, quick bool) *lab.Lab {
	t.Helper()
	l, err := lab.New(t.Output(), quick)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestOnlyAQuickRunIsLate: a whole one measures everything, however long it takes.
func TestOnlyAQuickRunIsLate(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		l := open(t, quick)
		if l.Late() {
			t.Errorf("quick %t: it is late at the start", quick)
		}
		if (l.Bound > 0) != quick {
			t.Errorf("quick %t: the bound is %v", quick, l.Bound)
		}
		if l.Bound = min(l.Bound, time.Nanosecond); l.Late() != quick {
			t.Errorf("quick %t: it is late is %t", quick, l.Late())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseReportsAllErrors, and removes the files all the same.
func TestCloseReportsAllErrors(t *testing.T) {
	t.Parallel()
	l := open(t, true)
	first, second := errors.New("first"), errors.New("second")
	l.Closing(func() error { return first })
	l.Closing(func() error { return second })
	if err := l.Close(); !errors.Is(err, first) || !errors.Is(err, second) || !strings.HasPrefix(err.Error(), "second") {
		t.Errorf("Close = %v, want both, the second first", err)
	}
	if _, err := os.Stat(l.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
}

// TestWithoutPatienceNothingIsRunAgain, and patience has an end: each time takes
// some of it.
func TestWithoutPatienceNothingIsRunAgain(t *testing.T) {
	t.Parallel()
	l := open(t, true)
	l.Patience = 0
	if l.Again(t.Context()) {
		t.Error("there is time for one more turn")
	}
	l.Patience = 2 * (l.Slot() + l.Warm())
	for n := 1; l.Again(t.Context()); n++ {
		if n > 10 {
			t.Fatal("patience has no end")
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestPointsOfAChart come in their order, and without those of others.
func TestPointsOfAChart(t *testing.T) {
	t.Parallel()
	l := open(t, true)
	l.Point("a", "ours", 8, 1)
	l.Point("b", "ours", 8, 2)
	l.Point("a", "theirs", 1, 3)
	got := l.Points("a")
	want := []lab.Point{{Chart: "a", Series: "ours", X: 8, Y: 1}, {Chart: "a", Series: "theirs", X: 1, Y: 3}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("Points = %v, want %v", got, want)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestBenchmarkTakesAsLongAsATurn and tells what one round costs.
func TestBenchmarkTakesAsLongAsATurn(t *testing.T) {
	l := open(t, true)
	kept := make([][]byte, 1)
	r, err := l.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			kept[0] = make([]byte, 64)
		}
	})
	if err != nil || r.N == 0 || r.AllocsPerOp() != 1 {
		t.Errorf("Benchmark = %v, %v, want one allocation", r, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
