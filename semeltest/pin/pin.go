// Package pin holds the fingerprint and the stored form of an operation in a golden file, so
// that a test finds a change that other versions of the program would not understand.
package pin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Update is the environment variable that makes [Call] write its files, if it is "1".
const Update = "SEMEL_PIN_UPDATE"

// pinned is the golden file of a call. It has what other versions of the program read.
type pinned struct {
	Operation   string `json:"operation"`
	Fingerprint []byte `json:"fingerprint"`
	Input       string `json:"input,omitempty"`
	Outcome     string `json:"outcome"`
}

// Call compares the fingerprint of c and the stored form of its result with those in the
// golden file, so that a change of the program that other versions would not understand is
// found by a test and not by a rolling deployment. It also stores the golden file's record,
// as an earlier version of the program did, and checks that this version answers c from it,
// with result. Use it with a call of each operation, with an input and a result that have all their
// fields set:
//
//	pin.Call(t, "testdata/create_order.json", createOrder.Call(semel.ScopeOf("ann"), "k1", in), order)
//
// With the environment variable [Update] set to 1 it writes the file instead. The clock
// is the one of the process, so an operation with a KeyTime needs a key of today.
func Call[T any](t testing.TB, golden string, c semel.Call, result T) {
	t.Helper()
	r, err := recorded(c, result)
	if err != nil {
		t.Fatalf("pin: %v", err)
	}
	now := pinned{r.Operation, r.Fingerprint, string(r.Input), string(r.Outcome)}
	text, err := os.ReadFile(golden)
	switch {
	case os.Getenv(Update) == "1":
		write(t, golden, now)
		return
	case errors.Is(err, os.ErrNotExist):
		t.Fatalf("pin: %s is missing; run the test with %s=1 to write it", golden, Update)
	case err != nil:
		t.Fatalf("pin: read the golden file: %v", err)
	}
	var before pinned
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatalf("pin: read %s: %v", golden, err)
	}
	if before.Operation != now.Operation {
		t.Errorf("pin: the operation was %q and is %q: the new name knows none of the keys", before.Operation, now.Operation)
		return
	}
	r.Fingerprint, r.Input, r.Outcome = before.Fingerprint, []byte(before.Input), []byte(before.Outcome)
	r.Expire = time.Hour
	if err := answers(c, r, result); err != nil {
		t.Errorf("pin: a retry of a request that an earlier version has recorded: %v", err)
	}
	if !bytes.Equal(before.Fingerprint, now.Fingerprint) {
		t.Errorf("pin: the fingerprint of the input has changed. If this version is deployed, a retry of a request that the " +
			"earlier version has recorded is refused with semel.ErrMismatch, and so is the reverse. A new field changes no " +
			"fingerprint while it has its zero value")
	}
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("pin: the stored form differs from %s (-file +now): an earlier version of the program may not understand it. "+
			"If that is meant, run the test with %s=1:\n%s", golden, Update, diff)
	}
}

// recorded returns the record of c once its function has returned result.
func recorded[T any](c semel.Call, result T) (r store.Record, err error) {
	mem := memory.New(memory.Options{})
	engine, err := semel.New(mem, semel.Options{Survive: store.NoFailure})
	if err != nil {
		return r, err
	}
	if err := runPinned(engine, c, result); err != nil {
		return r, fmt.Errorf("run %s: %w", c.Operation(), err)
	}
	found, err := mem.Get(context.Background(), []store.ID{c.ID()})
	if err != nil {
		return r, fmt.Errorf("read the record: %w", err)
	}
	if found[0].Record == nil {
		return r, fmt.Errorf("the call of %s left no record", c.Operation())
	}
	return *found[0].Record, nil
}

// runPinned runs the call by DoTx if its policy allows that, and otherwise by Do.
func runPinned[T any](engine *semel.Engine[*memory.Tx], c semel.Call, result T) error {
	_, _, err := semel.DoTx(context.Background(), engine, c, func(context.Context, *memory.Tx) (T, error) { return result, nil })
	if field, ok := errtype.Find[*semel.FieldError](err); ok && field.Field == "Policy" {
		_, _, err = semel.Do(context.Background(), engine, c, func(context.Context) (T, error) { return result, nil })
	}
	return err
}

// answers reports what keeps this version of the program from answering c with result from
// r, which an earlier version has stored.
func answers[T any](c semel.Call, r store.Record, result T) error {
	older := memory.New(memory.Options{})
	if _, err := older.Swap(context.Background(), []store.Change{{To: r}}); err != nil {
		return fmt.Errorf("store the record: %w", err)
	}
	engine, err := semel.New(older, semel.Options{Survive: store.NoFailure})
	if err != nil {
		return err
	}
	attempt, out, err := adapter.Begin(context.Background(), engine, c)
	switch {
	case err != nil:
		return fmt.Errorf("it is answered: %w", err)
	case attempt != nil:
		attempt.Abandon()
		return errors.New("it would run again")
	}
	var v T
	if err := out.Decode(&v); err != nil {
		return fmt.Errorf("its result cannot be read: %w", err)
	}
	if !reflect.DeepEqual(v, result) {
		return fmt.Errorf("its result is %+v, want %+v", v, result)
	}
	return nil
}

func write(t testing.TB, golden string, p pinned) {
	t.Helper()
	text, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(golden), 0o755)
	}
	if err == nil {
		err = os.WriteFile(golden, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatalf("pin: write the golden file: %v", err)
	}
}
