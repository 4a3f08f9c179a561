package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
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

// equalAnswers calls an operation that returns v three times, in each way, and
// checks that all three answers are equal.
func equalAnswers[T any](t *testing.T, v T, altered bool) {
	t.Helper()
	ways := map[string]func(context.Context, *process, semel.Call) (T, bool, error){
		"Do": func(ctx context.Context, p *process, c semel.Call) (T, bool, error) {
			return semel.Do(ctx, p, c, func(context.Context) (T, error) { return v, nil })
		},
		"DoTx": func(ctx context.Context, p *process, c semel.Call) (T, bool, error) {
			return semel.DoTx(ctx, p.Engine, c, func(context.Context, *memory.Tx) (T, error) { return v, nil })
		},
		"DoTx leased": func(ctx context.Context, p *process, c semel.Call) (T, bool, error) {
			return semel.DoTx(ctx, p.Engine, leasedCall(c.Key()), func(context.Context, *memory.Tx) (T, error) { return v, nil })
		},
		"InTx": func(ctx context.Context, p *process, c semel.Call) (T, bool, error) {
			return semel.Do(ctx, p, leasedCall(c.Key()), func(ctx context.Context) (T, error) {
				return semel.InTx(ctx, p.Engine, func(context.Context, *memory.Tx) (T, error) { return v, nil })
			})
		},
		"DoBatch": func(ctx context.Context, p *process, c semel.Call) (T, bool, error) {
			return semel.DoBatch(ctx, p.Engine, c, func(context.Context) (T, memory.Batch, error) {
				return v, nil, nil
			})
		},
	}
	for name, ask := range ways {
		p, _ := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		var answers [3]T
		var errs [3]error
		for i := range answers {
			var replayed bool
			answers[i], replayed, errs[i] = ask(t.Context(), p, call)
			if replayed != (i > 0) && errs[i] == nil {
				t.Errorf("%s: answer %d: replayed = %v", name, i, replayed)
			}
		}
		for i := 1; i < len(answers); i++ {
			if diff := cmp.Diff(answers[0], answers[i], cmp.AllowUnexported(partlyEncoded{})); diff != "" {
				t.Errorf("%s: answer %d differs from the first (-first +later):\n%s", name, i, diff)
			}
			if errors.Is(errs[0], semel.ErrResultUnavailable) != errors.Is(errs[i], semel.ErrResultUnavailable) {
				t.Errorf("%s: errors %v and %v, want the same", name, errs[0], errs[i])
			}
		}
		if got := p.seen.count(event.Altered); (got > 0) != altered {
			t.Errorf("%s: events %v, want %q among them: %v", name, p.seen.kinds(), event.Altered, altered)
		}
	}
}

func leasedCall(key string) semel.Call {
	o := semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Minute}
	return semel.Define("leased", o).Call(me, key, "in")
}

// The caller whose function made the result receives it as it was stored, like every
// caller after it. If that is not what the function returned, an operator learns of it.
func TestRule15EveryCallerReceivesWhatWasStored(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ask     func(t *testing.T)
		altered bool
	}{
		"string":             {func(t *testing.T) { t.Helper(); equalAnswers(t, "paid", false) }, false},
		"invalid UTF-8":      {func(t *testing.T) { t.Helper(); equalAnswers(t, "id-\xff\xfe", true) }, true},
		"a replacement rune": {func(t *testing.T) { t.Helper(); equalAnswers(t, "id-\ufffd\\ufffd", false) }, false},
		"raw bytes":          {func(t *testing.T) { t.Helper(); equalAnswers(t, semel.Raw("\xff"), false) }, false},
		"large number":       {func(t *testing.T) { t.Helper(); equalAnswers(t, bigNumber, false) }, false},
		"any large number":   {func(t *testing.T) { t.Helper(); equalAnswers[any](t, bigNumber, true) }, true},
		"any small number":   {func(t *testing.T) { t.Helper(); equalAnswers[any](t, 7, false) }, false},
		"map of any":         {func(t *testing.T) { t.Helper(); equalAnswers(t, map[string]any{"n": bigNumber}, true) }, true},
		"unexported field":   {func(t *testing.T) { t.Helper(); equalAnswers(t, partlyEncoded{"n", "s"}, true) }, true},
		"unset field":        {func(t *testing.T) { t.Helper(); equalAnswers(t, partlyEncoded{Name: "n"}, false) }, false},
		"pointer receiver":   {func(t *testing.T) { t.Helper(); equalAnswers(t, pointerMarshaler{7}, false) }, false},
		"undecodable":        {func(t *testing.T) { t.Helper(); equalAnswers(t, marshalOnly{7}, true) }, true},
		"time":               {func(t *testing.T) { t.Helper(); equalAnswers(t, time.Now(), false) }, false},
		"pointer":            {func(t *testing.T) { t.Helper(); equalAnswers(t, &bill{Account: "a"}, false) }, false},
		"nil":                {func(t *testing.T) { t.Helper(); equalAnswers[*bill](t, nil, false) }, false},
		"void":               {func(t *testing.T) { t.Helper(); equalAnswers(t, struct{}{}, false) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.ask(t)
		})
	}
}

// A callback of a batch changes the result after it was stored: what was stored counts.
func TestRule15BatchThatChangesItsResultRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
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

// refused requires that a call is refused before anything runs, naming the field.
func refused(t *testing.T, c semel.Call, field string) {
	t.Helper()
	p, mem := solo(t, semel.Options{})
	calls := map[string]func() error{
		"Do":      func() error { return do(t.Context(), p, c, never(t)).err },
		"DoTx":    func() error { return doTx(t.Context(), p, c, neverTx(t)).err },
		"Enqueue": func() error { _, err := semel.Enqueue(t.Context(), p, c, semel.EnqueueOptions{}); return err },
	}
	for name, ask := range calls {
		err := ask()
		wrong, ok := errtype.Find[*semel.FieldError](err)
		if !ok || wrong.Field != field {
			t.Errorf("%s = %v, want a FieldError for %s", name, err, field)
		}
	}
	if r := record(t, mem, c); r.Operation != "" {
		t.Errorf("a record is left: %+v", r)
	}
}

// An input that JSON cannot carry is refused by name, before anything runs.
func TestRule15InputsThatDoNotSurviveAreRefused(t *testing.T) {
	t.Parallel()
	type order struct {
		Lines []struct{ SKU string }
		Extra any
		Tags  map[string]string
	}
	tests := map[string]struct {
		call  semel.Call
		field string
	}{
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
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.call, tt.field)
		})
	}
}

func plainCall[In any](in In) semel.Call {
	return semel.Define("op", semel.OperationOptions[In]{}).Call(me, "k", in)
}

func nan() float64 { zero := 0.0; return zero / zero }

// Inputs that only look unusual are accepted.
func TestRule15OrdinaryInputsAreAccepted(t *testing.T) {
	t.Parallel()
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
	calls := map[string]semel.Call{
		"struct": plainCall(order{
			embedded: embedded{7}, At: time.Now(), Note: "\xff", Shape: map[string]any{"n": 1}, Pointed: pointerMarshaler{1},
			Children: []order{{At: time.Now().UTC()}},
		}),
		"any of a struct": plainCall[any](bill{Account: "a", Note: "\ufffd"}),
		"nil":             plainCall[any](nil),
		"raw":             plainCall(semel.Raw("\xff")),
		"bytes":           plainCall([]byte("\xff")),
		"text":            plainCall(strings.Repeat("\\\"", 10)),
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := solo(t, semel.Options{})
			do(t.Context(), p, call, returns("done")).want(t, "done", false)
			do(t.Context(), p, call, never(t)).want(t, "done", true)
			task := semel.Define("task", semel.OperationOptions[any]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}}).Call(me, "k2", bill{Account: "a"})
			if added, err := semel.Enqueue(t.Context(), p, task, semel.EnqueueOptions{}); !added || err != nil {
				t.Errorf("Enqueue = %v, %v", added, err)
			}
		})
	}
}
