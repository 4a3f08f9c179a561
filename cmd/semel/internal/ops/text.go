package ops

import (
	"fmt"
	"strconv"

	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// dueOf formats when r may be claimed or taken over.
func dueOf(r *store.Record) string {
	switch {
	case !recordview.HasDue(r.State):
		return "-"
	case r.Due > 0:
		return "in " + recordview.Ago(r.Due)
	default:
		return "overdue " + recordview.Ago(-r.Due)
	}
}

// expiresOf formats when r may be purged.
func expiresOf(r *store.Record) string {
	switch {
	case r.Expire == 0:
		return "never"
	case r.Expire > 0:
		return "in " + recordview.Ago(r.Expire)
	default:
		return recordview.Ago(-r.Expire) + " ago: semel purge removes it"
	}
}

// keyOf formats the key of r.
func keyOf(r *store.Record) string { return recordview.Safe(r.Key) }

// outcomeLine returns v as a line for people.
func outcomeLine(v *recordview.Outcome) string {
	switch v.Kind {
	case recordview.KindFailure:
		text := "failure"
		if v.Code != "" {
			text += " " + recordview.Safe(v.Code)
		}
		if len(v.Details) > 0 {
			text += ", details " + recordview.Safe(string(v.Details))
		}
		if v.Message != "" {
			text += ": " + recordview.Safe(v.Message)
		}
		return text
	case recordview.KindUnavailable:
		return "the result is not available: " + recordview.Safe(v.Reason)
	case recordview.KindNone, recordview.KindProgress:
		return "none"
	}
	text := fmt.Sprintf("%s, %d bytes", v.Kind, v.Bytes)
	switch {
	case v.JSON != nil:
		text += ": " + recordview.Safe(string(v.JSON))
	case v.Base64 != nil:
		text += ": " + strconv.Quote(string(v.Base64))
	}
	return text
}
