package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// tokens returns the records of a page's form.
func (a answer) tokens() (all []string) {
	for _, part := range strings.Split(a.body, `name="record" value="`)[1:] {
		token, _, _ := strings.Cut(part, `"`)
		all = append(all, token)
	}
	return all
}

// state returns the state of a record.
func (g *rig) state(t *testing.T, id store.ID) store.State {
	t.Helper()
	return check.Must(admin.Read(t.Context(), g.engine, id))(t).State
}

func TestResolveOne(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	page := g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "What happened?")
	form := url.Values{
		"action": {"resolve"}, "record": page.tokens(), "to": {"succeeded"}, "result": {`"paid"`}, "reason": {"the bank's list has it"},
	}
	g.post(t, "apply", form).has(t, http.StatusOK, "1 done, 0 changed")
	check.Equal(t, g.state(t, id), store.Succeeded, "the record is")
	v, replayed, err := semel.Do(t.Context(), g.engine, g.charge.Call(semel.ScopeOf("shop", "7"), "order-1", input{"4111-1111"}), noRun)
	if err != nil || !replayed || v != "paid" {
		t.Errorf("the retry got %q, %v, %v", v, replayed, err)
	}
	g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "ann", "the bank&#39;s list has it")
	// The same form again changes nothing.
	form.Set("to", "failed")
	g.post(t, "apply", form).has(t, http.StatusOK, "0 done, 1 changed meanwhile")
	check.Equal(t, g.state(t, id), store.Succeeded, "the record is")
}

// A result that callers of the operation could not decode is refused, until the actor insists.
func TestResolveWithAnotherForm(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	g.run(t, g.charge, "order-0", false)
	id := g.run(t, g.charge, "order-1", true)
	page := g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "Any form.")
	form := url.Values{
		"action": {"resolve"}, "record": page.tokens(), "to": {"succeeded"}, "result": {`{"id":"ch_1"}`}, "reason": {"the bank's list has it"},
	}
	g.post(t, "apply", form).has(t, http.StatusOK, "0 done", "Result is an object; results of operation charge are a string")
	check.Equal(t, g.state(t, id), store.InDoubt, "the record is")
	form.Set("any_form", "1")
	g.post(t, "apply", form).has(t, http.StatusOK, "1 done")
	check.Equal(t, g.state(t, id), store.Succeeded, "the record is")
}

func TestRedriveAndCancel(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	letter := g.run(t, g.mail, "welcome-1", true)
	g.run(t, g.charge, "order-1", true)
	preview := g.get(t, "preview?action=redrive&dead=1").has(t, http.StatusOK, "<b>1 record</b>", "welcome-1").hasNot(t, "order-1")
	form := url.Values{"action": {"redrive"}, "record": preview.tokens(), "reason": {"the server is back"}}
	g.post(t, "apply", form).has(t, http.StatusOK, "1 done")
	check.Equal(t, g.state(t, letter), store.Pending, "the letter is")

	preview = g.get(t, "preview?action=cancel&operation=mail").has(t, http.StatusOK, "<b>1 record</b>")
	g.post(t, "apply", url.Values{"action": {"cancel"}, "record": preview.tokens(), "reason": {"not needed"}}).has(t, http.StatusOK, "1 done")
	// Its first attempt may have sent the mail, so it is in doubt.
	check.Equal(t, g.state(t, letter), store.InDoubt, "the letter is")
	notes := check.Must(admin.Notes(t.Context(), g.engine, letter))(t)
	if len(notes) != 2 || notes[1].Actor != "ann" || notes[1].Reason != "not needed" {
		t.Errorf("notes: %+v", notes)
	}
}

// Records that are selected on a list are redriven, and cancelled, without others.
func TestSelectedRecords(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	var ids []store.ID
	for i := range 5 {
		ids = append(ids, g.run(t, g.mail, fmt.Sprintf("welcome-%d", i), true))
	}
	g.get(t, "records?operation=mail").has(t, http.StatusOK, `name="id" value="`+ids[4].String()+`"`, `name="action" value="cancel"`)
	selected := url.Values{"id": {ids[0].String(), ids[2].String(), ids[3].String()}}
	for _, action := range []string{"redrive", "cancel"} {
		selected.Set("action", action)
		preview := g.get(t, "preview?"+selected.Encode()).has(t, http.StatusOK, "<b>3 records</b>", "welcome-2").hasNot(t, "welcome-4")
		check.Equal(t, len(g.events), map[string]int{"redrive": 0, "cancel": 1}[action], "audited events before %s", action)
		form := url.Values{"action": {action}, "record": preview.tokens(), "reason": {action + " them"}}
		g.post(t, "apply", form).has(t, http.StatusOK, "3 done, 0 changed meanwhile")
	}
	for i, id := range ids {
		notes := check.Must(admin.Notes(t.Context(), g.engine, id))(t)
		if chosen := i != 1 && i != 4; chosen != (len(notes) == 2) || !chosen && len(notes) > 0 {
			t.Errorf("record %d has the notes %+v", i, notes)
		}
	}
	if len(g.events) != 2 || g.events[1].Action != console.Cancel || len(g.events[1].Records) != 3 || g.events[1].Reason != "cancel them" {
		t.Errorf("audited: %+v", g.events)
	}
}

// A record of a caller's key is not run again, and the report says why.
func TestRefusedRedrive(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	page := g.get(t, "record?id="+id.String())
	g.post(t, "apply", url.Values{"action": {"redrive"}, "record": page.tokens()[:1], "reason": {"try"}}).
		has(t, http.StatusOK, "0 done, 0 changed meanwhile, 1 refused")
	check.Equal(t, g.state(t, id), store.InDoubt, "the record is")
}

func TestPurge(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", false)
	g.get(t, "preview?action=purge").has(t, http.StatusOK, "0 records are past")
	g.post(t, "apply", url.Values{"action": {"purge"}, "reason": {"disk"}}).has(t, http.StatusOK, "0 removed")
	check.Equal(t, g.state(t, id), store.Succeeded, "the record is")
	check.Equal(t, g.events[0].Action, console.Purge, "audited")
}

// bulkResolve resolves n records by a filter.
func bulkResolve(t *testing.T, g *rig, n int) {
	t.Helper()
	var last store.ID
	for i := range n {
		last = g.run(t, g.charge, fmt.Sprintf("order-%d", i), true)
	}
	preview := g.get(t, "preview?action=resolve&state=indoubt&operation=charge").
		has(t, http.StatusOK, fmt.Sprintf("<b>%d records</b>", n), "The first 20")
	tokens := preview.tokens()
	check.Equal(t, len(tokens), n, "records in the form")
	// One of them is resolved by another operator meanwhile.
	check.Must(admin.Resolve(t.Context(), g.engine, admin.Resolution{ID: last, To: store.Failed, Actor: "bob", Reason: "first"}))(t)
	form := url.Values{"action": {"resolve"}, "record": tokens, "to": {"pending"}, "reason": {"the bank was down"}}
	g.post(t, "apply", form).has(t, http.StatusOK, fmt.Sprintf("%d done, 1 changed meanwhile, 0 refused, 0 unknown.", n-1))
	check.Equal(t, g.state(t, last), store.Failed, "the record of the other operator is")
	if len(g.events) != 1 || len(g.events[0].Records) != n || g.events[0].Reason != "the bank was down" || g.events[0].Action != console.Resolve {
		t.Errorf("audited: %d events", len(g.events))
	}
	noted := 0
	for i := range n {
		id := g.charge.Call(semel.ScopeOf("shop", "7"), fmt.Sprintf("order-%d", i), input{}).ID()
		for _, note := range check.Must(admin.Notes(t.Context(), g.engine, id))(t) {
			if note.Actor == "ann" && note.Reason == "the bank was down" {
				noted++
			}
		}
	}
	check.Equal(t, noted, n-1, "notes")
}

func TestBulkResolve(t *testing.T) {
	t.Parallel()
	bulkResolve(t, memoryRig(t), 500)
}
