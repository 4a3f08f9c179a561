package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
)

// partlyEncoded has a field that JSON does not contain.
type partlyEncoded struct {
	Name   string
	secret string
}

// pointerMarshaler is marshaled by a method with a pointer receiver.
type pointerMarshaler struct{ N int }

func (p *pointerMarshaler) MarshalJSON() ([]byte, error) { return json.Marshal([]int{p.N}) }

func (p *pointerMarshaler) UnmarshalJSON(text []byte) error {
	var n []int
	if err := json.Unmarshal(text, &n); err != nil || len(n) != 1 {
		return errors.New("not a list of one number")
	}
	p.N = n[0]
	return nil
}

// marshalOnly can be encoded and not decoded.
type marshalOnly struct{ N int }

func (marshalOnly) MarshalJSON() ([]byte, error) { return []byte(`"one way"`), nil }

const bigNumber int64 = 1<<53 + 1

// The caller whose function made the result receives it as it was stored, like every
// caller after it. If that is not what the function returned, an operator learns of it.
func TestRule15EveryCallerReceivesWhatWasStored(t *testing.T) {
	t.Parallel()
	t.Run("invalid UTF-8", sameForAll("id-\xff\xfe", true))
	t.Run("a replacement rune", sameForAll("id-\ufffd\\ufffd", false))
	t.Run("large number", sameForAll(bigNumber, false))
	t.Run("any large number", sameForAll[any](bigNumber, true))
	t.Run("any small number", func(t *testing.T) {
		t.Parallel()
		p, _ := solo(t, semel.Options{})
		got, _, err := semel.Do(t.Context(), p, plainCall("in"), func(context.Context) (any, error) { return 7, nil })
		check.Result(got, err)(t, any(7.0), "Do")
		p.seen.wantNone(t, event.Altered)
	})
	t.Run("map of any", sameForAll(map[string]any{"n": bigNumber}, true))
	t.Run("unexported field", sameForAll(partlyEncoded{"n", "s"}, true))
	t.Run("unset field", sameForAll(partlyEncoded{Name: "n"}, false))
	t.Run("pointer receiver", sameForAll(pointerMarshaler{7}, false))
	t.Run("undecodable", sameForAll(marshalOnly{7}, true))
	t.Run("time", sameForAll(time.Now(), false))
	t.Run("pointer", sameForAll(&bill{Account: "a"}, false))
}

// A callback of a batch changes the result after it was stored: what was stored counts.
func TestRule15BatchThatChangesItsResultRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	p, call := soloCall(t, semel.OperationOptions[string]{})
	for _, replayed := range []bool{false, true} {
		got, again, err := semel.DoBatch(t.Context(), p.Engine, call, func(context.Context) (*bill, memory.Batch, error) {
			made := &bill{Account: "a"}
			return made, memory.Batch{func(*memory.Tx) error { made.Amount = 7; return nil }}, nil
		})
		if err != nil || again != replayed || got.Amount != 0 {
			t.Errorf("DoBatch = %+v, %v, %v, want the stored amount 0 and replayed %v", got, again, err, replayed)
		}
	}
	check.Equal(t, p.seen.count(event.Altered), 1, "events %q", event.Altered)
}

// An input that JSON cannot carry is refused by name, before anything runs.
func TestRule15InputsThatDoNotSurviveAreRefused(t *testing.T) {
	type order struct {
		Lines []struct{ SKU string }
		Extra any
		Tags  map[string]string
	}
	type row struct {
		call  semel.Call
		field string
	}
	tests := map[string]row{
		"a string":        {plainCall("acct\xf1"), "Input"},
		"in a list":       {plainCall(order{Lines: []struct{ SKU string }{{"a"}, {"\xf1"}}}), "Input.Lines[1].SKU"},
		"in a map":        {plainCall(order{Tags: map[string]string{"k": "\xf1"}}), "Input.Tags[...]"},
		"a map's key":     {plainCall(order{Tags: map[string]string{"\xf1": ""}}), "Input.Tags[a key]"},
		"in an interface": {plainCall(order{Extra: []string{"\xf1"}}), "Input.Extra[0]"},
		"a large number":  {plainCall(order{Extra: bigNumber}), "Input.Extra"},
		"unexported":      {plainCall(partlyEncoded{"n", "s"}), "Input.secret"},
		"undecodable":     {plainCall(struct{ At marshalOnly }{marshalOnly{1}}), "Input.At"},
		"no number":       {plainCall(struct{ F float64 }{nan()}), "Input.F"},
		"raw JSON":        {plainCall(struct{ Body json.RawMessage }{json.RawMessage("\"\xf1\"")}), "Input.Body"},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) { wantRefusedEverywhere(t, tt.call, tt.field) })
}

func plainCall[In any](in In) semel.Call {
	return semel.Define("op", semel.OperationOptions[In]{}).Call(me, "k", in)
}

func nan() float64 { zero := 0.0; return zero / zero }

// Inputs that only look unusual are accepted.
func TestRule15OrdinaryInputsAreAccepted(t *testing.T) {
	type embedded struct{ ID int }
	type order struct {
		embedded

		At       time.Time
		Note     string `json:"-"`
		Shape    any
		Pointed  pointerMarshaler
		_        struct{}
		Children []order
	}
	eachInBubble(t, map[string]semel.Call{
		"struct": plainCall(order{
			embedded: embedded{7}, At: time.Now(), Note: "\xff", Shape: map[string]any{"n": 1}, Pointed: pointerMarshaler{1},
			Children: []order{{At: time.Now().UTC()}},
		}),
		"any of a struct": plainCall[any](bill{Account: "a", Note: "\ufffd"}),
		"nil":             plainCall[any](nil),
		"raw":             plainCall(semel.Raw("\xff")),
		"bytes":           plainCall([]byte("\xff")),
		"text":            plainCall(strings.Repeat("\\\"", 10)),
	}, func(t *testing.T, call semel.Call) {
		p, _ := solo(t, semel.Options{})
		do(t.Context(), p, call, returns("done")).want(t, "done", false)
		do(t.Context(), p, call, never(t)).want(t, "done", true)
		later := semel.Define("task", semel.OperationOptions[any]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}}).Call(me, "k2", bill{Account: "a"})
		check.Result(semel.Enqueue(t.Context(), p, later, semel.EnqueueOptions{}))(t, true, "Enqueue")
	})
}
