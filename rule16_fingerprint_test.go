package semel_test

import (
	"testing"

	"github.com/semelgo/semel"
)

// The input of an operation in three versions of a program. Each later one has more
// fields, and has the old ones in another order.
type (
	inputV1 struct {
		Account string
		Amount  int64
	}
	extras struct {
		Note  string            `json:"note"`
		Tags  []string          `json:"tags"`
		Attrs map[string]string `json:"attrs"`
	}
	inputV2 struct {
		Currency string
		Amount   int64
		Account  string
		Options  struct{ Urgent bool }
		Parent   *inputV1

		extras
	}
)

func opV1() *semel.Operation[inputV1] {
	return semel.Define("pay", semel.OperationOptions[inputV1]{})
}

func opV2() *semel.Operation[inputV2] {
	return semel.Define("pay", semel.OperationOptions[inputV2]{})
}

// A deployment that adds fields to an input changes nothing for the keys that exist, in
// either direction, as long as the new fields are not set.
func TestRule16ANewFieldDoesNotChangeFingerprints(t *testing.T) {
	t.Parallel()
	old, added := opV1().Call(me, "k", inputV1{"a", 7}), opV2().Call(me, "k", inputV2{Account: "a", Amount: 7})
	for name, calls := range map[string][2]semel.Call{"old record": {old, added}, "new record": {added, old}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := solo(t, semel.Options{})
			do(t.Context(), p, calls[0], returns("done")).want(t, "done", false)
			do(t.Context(), p, calls[1], never(t)).want(t, "done", true)
		})
	}
}

// A set field makes another request, and so does a pointer to zero.
func TestRule16SetFieldsCount(t *testing.T) {
	t.Parallel()
	base := inputV2{Account: "a", Amount: 7}
	for name, change := range map[string]func(*inputV2){
		"old field":        func(in *inputV2) { in.Amount = 8 },
		"field set to 0":   func(in *inputV2) { in.Amount = 0 },
		"new field":        func(in *inputV2) { in.Currency = "EUR" },
		"nested":           func(in *inputV2) { in.Options.Urgent = true },
		"pointer to zero":  func(in *inputV2) { in.Parent = &inputV1{} },
		"embedded":         func(in *inputV2) { in.Note = "n" },
		"empty list":       func(in *inputV2) { in.Tags = []string{} },
		"zero in a list":   func(in *inputV2) { in.Tags = []string{""} },
		"empty map":        func(in *inputV2) { in.Attrs = map[string]string{} },
		"zero under a key": func(in *inputV2) { in.Attrs = map[string]string{"k": ""} },
		"quotes":           func(in *inputV2) { in.Account = `a","Currency":"EUR` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := solo(t, semel.Options{})
			do(t.Context(), p, opV2().Call(me, "k", base), returns("done")).want(t, "done", false)
			in := base
			change(&in)
			do(t.Context(), p, opV2().Call(me, "k", in), never(t)).wantErr(t, semel.ErrMismatch)
		})
	}
}

// Fields that JSON chooses between have their JSON name once.
func TestRule16EmbeddedFieldsCountAsInJSON(t *testing.T) {
	t.Parallel()
	type inner struct {
		ID   int
		Name string
	}
	type outer struct {
		inner

		ID int
	}
	flat := semel.Define("op", semel.OperationOptions[inner]{}).Call(me, "k", inner{1, "n"})
	nested := semel.Define("op", semel.OperationOptions[outer]{}).Call(me, "k", outer{inner{Name: "n"}, 1})
	p, _ := solo(t, semel.Options{})
	do(t.Context(), p, flat, returns("done")).want(t, "done", false)
	do(t.Context(), p, nested, never(t)).want(t, "done", true)
	hidden := semel.Define("op", semel.OperationOptions[outer]{}).Call(me, "k2", outer{inner{ID: 2}, 1})
	do(t.Context(), p, hidden, never(t)).wantErr(t, semel.ErrInvalid)
}
