// Package report writes results: for programs, and for readers.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/semelgo/semel/bench/internal/goal"
)

// line is a result in the JSON file.
type line struct {
	Name  string `json:"name"`
	Value number `json:"value"`
	// Unit ends in ", at least" or ", at most" if there is a goal.
	Unit   string   `json:"unit"`
	Goal   *float64 `json:"goal"` // the must
	Aim    *float64 `json:"aim"`
	Met    bool     `json:"met"` // by the must
	Detail string   `json:"detail"`
}

// number is null if it was not measured.
type number struct {
	v  float64
	ok bool
}

// MarshalJSON writes four significant digits, more than a repetition confirms.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.ok || math.IsNaN(n.v) || math.IsInf(n.v, 0) {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%.4g", n.v), nil
}

// JSON writes the results as an array, one result per line.
func JSON(w io.Writer, results []goal.Result) error {
	fmt.Fprint(w, "[")
	for i, r := range results {
		text, err := json.Marshal(line{
			Name: r.Name, Value: number{r.Value, !r.Missing}, Unit: unit(r.Row),
			Goal: rounded(r.Must), Aim: rounded(r.Aim), Met: r.Met(), Detail: r.Detail,
		})
		if err != nil {
			return fmt.Errorf("write result %q: %w", r.Name, err)
		}
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		if _, err := fmt.Fprintf(w, "\n  %s", text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, "\n]\n")
	return err
}

// unit adds the direction of the goal to the unit.
func unit(r goal.Row) string {
	switch {
	case r.Must == nil:
		return r.Unit
	case r.Least:
		return r.Unit + ", at most"
	default:
		return r.Unit + ", at least"
	}
}

func rounded(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(math.Round(*v*1e4) / 1e4)
}
