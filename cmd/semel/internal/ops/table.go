package ops

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// addReveal adds the --reveal flag, which shows the callers' data.
func addReveal(c *cobra.Command, reveal *bool, about string) {
	c.Flags().BoolVar(reveal, "reveal", false, about)
}

// linesOf returns a function that writes records to out as JSON, one per line.
func linesOf(out io.Writer, s salt, reveal bool) func(*store.Record) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return func(r *store.Record) error {
		if err := e.Encode(viewOf(r, s, reveal)); err != nil {
			return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("write record: %w", err)}
		}
		return nil
	}
}

// tableOf writes a heading to out, also for an empty list, and returns a
// function that writes records as table rows.
func tableOf(out io.Writer, reveal bool) func(*store.Record) error {
	row(out, reveal, "ID", "STATE", "ATTEMPT", "ERRORS", "CRASHES", "PRIORITY", "AGE", "SINCE", "DUE", "OPERATION", "SCOPE", "KEY")
	return func(r *store.Record) error {
		errors, crashes := progressCells(recordview.ProgressOf(r))
		row(out, reveal, r.ID.String(), r.State.String(), strconv.FormatUint(uint64(r.Attempt), 10), errors, crashes,
			strconv.Itoa(int(r.Priority)), recordview.Ago(r.Age), recordview.Ago(r.Since), dueOf(r), recordview.Safe(r.Operation), recordview.Scope(r), keyOf(r))
		return nil
	}
}

// row writes cells in columns; the last two only if all is true. The widths are
// fixed, because a long list is written while it is read.
func row(out io.Writer, all bool, cells ...string) {
	widths := []int{32, 10, 7, 6, 7, 8, 7, 7, 15, 24, 16, 0}
	if !all {
		cells = cells[:len(cells)-2]
	}
	var b strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
	}
	fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
}
