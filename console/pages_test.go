package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// pages are the pages that need no parameters.
func pages() []string { return []string{"", "records", "doubt", "dead", "storage"} }

func TestPagesShowRecords(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	g.run(t, g.charge, "order-2", false)
	letter := g.run(t, g.mail, "welcome-1", true)
	check.Must(semel.Enqueue(t.Context(), g.engine, g.mail.Call(semel.Shared(), "welcome-2", input{}), semel.EnqueueOptions{}))(t)

	realtest.Poll(t, "the counts", func() bool { return strings.Contains(g.get(t, "").body, `class="figure"`) })
	g.get(t, "").has(t, http.StatusOK, `<span class="figure">2</span> in doubt`, "charge", "mail", "aria-current=\"page\"")
	g.get(t, "records").has(t, http.StatusOK, "order-1", "order-2", "welcome-1", "shop / 7", "shared")
	g.get(t, "records?state=succeeded").has(t, http.StatusOK, "order-2").hasNot(t, "order-1", "welcome")
	g.get(t, "records?operation=mail").has(t, http.StatusOK, "welcome-1", "welcome-2").hasNot(t, "order-")
	g.get(t, "records?key=order-1").has(t, http.StatusOK, "order-1").hasNot(t, "order-2")
	g.get(t, "records?key=order-1&scope=shop+%2F+7").has(t, http.StatusOK, "order-1", "Found by its key").hasNot(t, "order-2")
	g.get(t, "records?scope=shared").has(t, http.StatusOK, "welcome-2").hasNot(t, "order-")
	g.get(t, "doubt").has(t, http.StatusOK, "order-1", "welcome-1").hasNot(t, "order-2")
	g.get(t, "dead").has(t, http.StatusOK, "mail", "1 dead letters in 1 groups").hasNot(t, "does not answer", "charge")
	g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "order-1", "InDoubt", "They are hidden").hasNot(t, "4111")
	g.get(t, "record?id="+letter.String()).has(t, http.StatusOK, "dead letter", "Attempt 1", "hidden").hasNot(t, "does not answer")
	g.get(t, "storage").has(t, http.StatusOK, "not divided into partitions")
	at := g.get(t, "records?id="+id.String())
	at.has(t, http.StatusSeeOther)
	check.Equal(t, at.Header.Get("Location"), "record?id="+id.String(), "an ID leads to")
}

// The pages of a list have each record once.
func TestPagesOfAList(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	for i := range 120 {
		g.run(t, g.charge, fmt.Sprintf("order-%03d", i), false)
	}
	seen, path := make(map[string]int), "records?operation=charge"
	for range 4 {
		page := g.get(t, path).has(t, http.StatusOK)
		for _, part := range strings.Split(page.body, `aria-label="Select `)[1:] {
			key, _, _ := strings.Cut(part, `"`)
			seen[key]++
		}
		_, next, found := strings.Cut(page.body, `<a class="button" href="`)
		if !found {
			break
		}
		path, _, _ = strings.Cut(strings.ReplaceAll(next, "&amp;", "&"), `"`)
	}
	check.Equal(t, len(seen), 120, "records on the pages")
	for key, n := range seen {
		check.Equal(t, n, 1, "%s is listed", key)
	}
}

// Data of callers is shown after a POST only, to an actor with the right, and audited.
func TestRevealing(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	letter := g.run(t, g.mail, "welcome-1", true)
	done := g.run(t, g.charge, "order-1", false)
	form := url.Values{"id": {done.String()}}
	g.become(console.Actor{Name: "bob", Write: true})
	g.get(t, "record?id="+done.String()).hasNot(t, ">Reveal<")
	g.post(t, "record", form).has(t, http.StatusForbidden).hasNot(t, "paid")
	g.post(t, "dead", nil).has(t, http.StatusForbidden).hasNot(t, "bank")
	check.Equal(t, len(g.events), 0, "audited events")

	g.become(console.Actor{Name: "ann", Reveal: true})
	g.post(t, "record", form).has(t, http.StatusOK, "paid ").hasNot(t, "<b>all")
	g.post(t, "record", url.Values{"id": {letter.String()}}).has(t, http.StatusOK, "4111", "bank &lt;script&gt;")
	g.post(t, "dead", nil).has(t, http.StatusOK, "bank &lt;script&gt;")
	if len(g.events) != 3 || g.events[0].Actor != "ann" || g.events[0].Action != console.Reveal || g.events[0].Records[0] != done {
		t.Errorf("audited: %+v", g.events)
	}
	g.refuse = errBank
	g.post(t, "record", form).has(t, http.StatusServiceUnavailable).hasNot(t, "paid", "bank")
}
