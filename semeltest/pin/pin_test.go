package pin_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semeltest/pin"
)

// failures is a test that remembers what it was told.
type failures struct {
	testing.TB

	reported []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, a ...any) {
	f.reported = append(f.reported, fmt.Sprintf(format, a...))
}

// The input and the result of one operation in three versions of a program.
type (
	order1 struct{ Item string }
	order2 struct {
		Item string
		Note string // new
	}
	order3 struct{ Article string } // renamed
	made1  struct{ ID int }
	made2  struct{ OrderID int } // renamed
)

// TestCall: a version of a program that answers the records of an earlier one as that did
// passes, and one that does not is told what its retries would get.
func TestCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "order.json")
	me := semel.ScopeOf("ann")
	t.Setenv(pin.Update, "1")
	pin.Call(t, file, semel.Define("order", semel.OperationOptions[order1]{}).Call(me, "k", order1{"book"}), made1{7})
	t.Setenv(pin.Update, "")
	first := semel.Define("order", semel.OperationOptions[order1]{}).Call(me, "k", order1{"book"})
	for name, test := range map[string]struct {
		call func(f *failures)
		want string
	}{
		"the same": {func(f *failures) { pin.Call(f, file, first, made1{7}) }, ""},
		"a new field": {func(f *failures) {
			pin.Call(f, file, semel.Define("order", semel.OperationOptions[order2]{}).Call(me, "k", order2{Item: "book"}), made1{7})
		}, ""},
		"a renamed field of the input": {func(f *failures) {
			pin.Call(f, file, semel.Define("order", semel.OperationOptions[order3]{}).Call(me, "k", order3{"book"}), made1{7})
		}, "used for another request"},
		"a renamed field of the result": {func(f *failures) { pin.Call(f, file, first, made2{7}) }, "its result is {OrderID:0}, want {OrderID:7}"},
		"a renamed operation": {func(f *failures) {
			pin.Call(f, file, semel.Define("buy", semel.OperationOptions[order1]{}).Call(me, "k", order1{"book"}), made1{7})
		}, `the operation was "order" and is "buy"`},
		"chosen fields": {func(f *failures) {
			chosen := semel.Define("order", semel.OperationOptions[order1]{Fingerprints: []func(order1) any{func(o order1) any { return o.Item }}})
			pin.Call(f, file, chosen.Call(me, "k", order1{"book"}), made1{7})
		}, "the stored form differs"},
	} {
		f := &failures{TB: t}
		test.call(f)
		reported := strings.Join(f.reported, "\n")
		if (test.want == "") != (reported == "") || !strings.Contains(reported, test.want) {
			t.Errorf("%s: told %q, want %q", name, reported, test.want)
		}
	}
	outside := semel.Define("charge", semel.OperationOptions[order1]{Policy: semel.Keyed()}).Call(me, "k", order1{"book"})
	other := filepath.Join(filepath.Dir(file), "charge.json")
	t.Setenv(pin.Update, "1")
	pin.Call(t, other, outside, made1{7})
	t.Setenv(pin.Update, "")
	pin.Call(t, other, outside, made1{7})
}
