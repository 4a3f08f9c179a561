package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRetentionIsLongerThanRecording: a record that is purged while its leader still
// asks what became of a commit would tell it that nothing had happened.
func TestRetentionIsLongerThanRecording(t *testing.T) {
	t.Parallel()
	short := semel.Define("op", semel.OperationOptions[int]{Retention: 5 * time.Second})
	wantField := func(name string, err error) {
		t.Helper()
		var field *semel.FieldError
		if !errors.As(err, &field) || field.Field != "Retention" {
			t.Errorf("%s returned %v, want a FieldError of Retention", name, err)
		}
	}
	_, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Retention: time.Second})
	wantField("New with a short Retention", err)
	_, err = semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{short}})
	wantField("New with a short operation", err)
	p, _ := solo(t, semel.Options{})
	_, _, err = semel.DoTx(t.Context(), p.Engine, short.Call(semel.Shared(), "k", 1), func(context.Context, *memory.Tx) (int, error) { return 1, nil })
	wantField("DoTx", err)
	_, _, err = adapter.Begin(t.Context(), p, short.Call(semel.Shared(), "k", 1))
	wantField("Begin", err)
}
