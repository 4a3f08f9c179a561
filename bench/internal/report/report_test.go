package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/report"
)

func results() []goal.Result {
	return []goal.Result{
		{Row: goal.AtLeast("fast", "x", 4, 8), Value: 5.12345, Detail: `"quoted"; 3 rounds`},
		{Row: goal.AtMost("cheap", "µs", 1/5.5, 0.125), Value: 0.5},
		{Row: goal.AtMost("small", "allocations", 10, 5), Value: 5},
		{Row: goal.Shown("shown", "x"), Value: 0.1},
		{Row: goal.AtLeast("gone", "x", 4, 8), Detail: "not measured: no server", Missing: true},
	}
}

// TestJSONHasTheseFieldsAndNoOthers: other programs read it.
func TestJSONHasTheseFieldsAndNoOthers(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.JSON(&b, results()); err != nil {
		t.Fatal(err)
	}
	want := `[
  {"name":"fast","value":5.123,"unit":"x, at least","goal":4,"aim":8,"met":true,"detail":"\"quoted\"; 3 rounds"},
  {"name":"cheap","value":0.5,"unit":"µs, at most","goal":0.1818,"aim":0.125,"met":false,"detail":""},
  {"name":"small","value":5,"unit":"allocations, at most","goal":10,"aim":5,"met":true,"detail":""},
  {"name":"shown","value":0.1,"unit":"x","goal":null,"aim":null,"met":true,"detail":""},
  {"name":"gone","value":null,"unit":"x, at least","goal":4,"aim":8,"met":false,"detail":"not measured: no server"}
]
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

// TestJSONIsJSON: the output is valid JSON for every result.
func TestJSONIsJSON(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e21, 1e-9, 0, -3, 123_456_789} {
		var b bytes.Buffer
		if err := report.JSON(&b, []goal.Result{{Row: goal.Shown("odd", "x"), Value: v}}); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b.Bytes()) {
			t.Errorf("of %v: %s", v, &b)
		}
	}
	var b bytes.Buffer
	if err := report.JSON(&b, nil); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("of nothing: %v, %s", err, &b)
	}
}

// TestTableSaysHowFarItIs from the aim, and what was missed, in words.
func TestTableSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.Table(&b, results()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| must | fast | 5.12× | ≥ 4× | ≥ 8× | 36 % off |\n",
		"| **missed** | cheap | 0.5 µs | ≤ 0.182 µs | ≤ 0.125 µs | 300 % off |\n",
		"| aim | small | 5 allocations | ≤ 10 allocations | ≤ 5 allocations | reached |\n",
		"| shown | shown | 0.1× |  |  |  |\n",
		"| not measured | gone | – | ≥ 4× | ≥ 8× |  |\n",
		"- **gone**: not measured: no server\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks\n%s\nin\n%s", want, &b)
		}
	}
}
