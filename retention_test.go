package semel_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRetentionIsLongerThanRecording: a record that is purged while its leader still
// asks what became of a commit would tell it that nothing had happened.
func TestRetentionIsLongerThanRecording(t *testing.T) {
	t.Parallel()
	short := plain("op", semel.OperationOptions[string]{Retention: 5 * time.Second})
	for _, o := range []semel.Options{{Retention: time.Second}, {Operations: []semel.Declared{short}}} {
		o.Survive = store.NoFailure
		_, err := semel.New(memory.New(memory.Options{}), o)
		wantField(t, err, "Retention")
	}
	wantRefusedEverywhere(t, short.Call(me, "k", "in"), "Retention")
}
