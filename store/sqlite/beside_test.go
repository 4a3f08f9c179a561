package sqlite_test

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/store/sqlite"
)

// What runs beside its caller is not held up by what hangs, and a goroutine that has
// done with it is taken again, but does not stay for ever: the bubble would not end.
func TestBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := sqlite.NewBeside()
		hang := make(chan struct{})
		run(func() { <-hang })
		var goroutines [3]string
		for i := range goroutines {
			run(func() { goroutines[i] = goroutine() })
			synctest.Wait()
		}
		if first := goroutines[0]; first == "" || goroutines != [3]string{first, first, first} {
			t.Errorf("one after the other ran in %q, want it to be one goroutine", goroutines)
		}
		close(hang)
		<-time.After(time.Minute)
	})
}

// goroutine is the name of the one that it is called in.
func goroutine() string {
	stack := make([]byte, 64)
	name, _, _ := bytes.Cut(stack[:runtime.Stack(stack, false)], []byte(" ["))
	return string(name)
}
