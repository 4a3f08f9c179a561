package recordview_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// TestCheckForm compares results with others of the operation.
func TestCheckForm(t *testing.T) {
	t.Parallel()
	const object = `{"amount":5,"note":null}`
	for name, c := range map[string]struct {
		others []string
		result string
		want   string // of the error
	}{
		"nothing to compare with":  {nil, `7`, ""},
		"no JSON to compare with":  {[]string{"rbytes", ""}, `7`, ""},
		"the same fields":          {[]string{`j` + object}, object, ""},
		"fewer fields":             {[]string{`j` + object}, `{"note":"x"}`, ""},
		"fields of several others": {[]string{`j{"amount":5}`, `j{"note":"x"}`}, object, ""},
		"another field":            {[]string{`j` + object}, `{"amount":5,"id":"ch"}`, `semel: Result has the field "id", which no other result of operation pay has`},
		"a string for an object":   {[]string{`j` + object}, `"ch"`, "semel: Result is a string; results of operation pay are an object"},
		"an object for a number":   {[]string{`j7`, `jnull`}, object, "semel: Result is an object; results of operation pay are a number or null"},
		"an array for a boolean":   {[]string{`jtrue`}, `[]`, "semel: Result is an array; results of operation pay are a boolean"},
		"true for false":           {[]string{`jfalse`}, `true`, ""},
	} {
		list := func(_ context.Context, q store.Query) (records []store.Record, err error) {
			check.Equal(t, q, store.Query{State: store.Succeeded, Operation: "pay", Limit: 20}, "%s", name)
			for _, outcome := range c.others {
				records = append(records, store.Record{Token: store.Token{State: store.Succeeded}, Outcome: []byte(outcome)})
			}
			return records, nil
		}
		err := recordview.CheckForm(t.Context(), list, "pay", json.RawMessage(c.result))
		got := ""
		if err != nil {
			check.ErrorIs(t, err, semel.ErrInvalid, "%s", name)
			got = err.Error()
		}
		check.Equal(t, got, c.want, "%s", name)
	}
	broken := func(context.Context, store.Query) ([]store.Record, error) { return nil, errors.New("no answer") }
	check.NoError(t, recordview.CheckForm(t.Context(), broken, "pay", json.RawMessage(`1`)), "without an answer of the store")
}
