package ops

import (
	"fmt"
	"strconv"

	"github.com/semelgo/semel/internal/recordview"
)

// progressLine returns v as a line for people.
func progressLine(v *recordview.Progress) string {
	text := fmt.Sprintf("errors %d, crashes %d, snoozes %d", v.Errors, v.Crashes, v.Snoozes)
	if v.Redrives > 0 {
		text += fmt.Sprintf(", redrives %d", v.Redrives)
	}
	return text
}

// progressCells returns the numbers of errors and crashes as cells of a table.
func progressCells(v *recordview.Progress) (errors, crashes string) {
	if v == nil {
		return "-", "-"
	}
	return strconv.Itoa(v.Errors), strconv.Itoa(v.Crashes)
}

// tryLine returns v as a line for people.
func tryLine(v *recordview.Try) string {
	text := string(v.Kind)
	switch {
	case v.Error != "":
		text += ": " + recordview.Safe(v.Error)
	case v.Bytes > 0:
		text += fmt.Sprintf(", %d bytes", v.Bytes)
	}
	return text
}
