package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// row returns the row of a table that has a text.
func (a answer) row(t *testing.T, text string) answer {
	t.Helper()
	for part := range strings.SplitSeq(a.body, "<tr>") {
		if strings.Contains(part, text) {
			part, _, _ = strings.Cut(part, "</tr>")
			return answer{a.Response, part}
		}
	}
	t.Fatalf("%s has no row with %q:\n%s", a.Request.URL, text, a.body)
	return a
}

// The overview shows the depth and the age of each queue, compared with the largest one.
func TestQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
		add := func(operation, key string, delay time.Duration) {
			op := semel.Define(operation, semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
			check.Must(semel.Enqueue(t.Context(), engine, op.Call(semel.Shared(), key, ""), semel.EnqueueOptions{Delay: delay}))(t)
		}
		add("deep", "a", 0)
		pass(30 * time.Minute)
		for _, key := range []string{"b", "c", "d"} {
			add("deep", key, time.Hour)
		}
		add("flat", "a", 0)
		pass(30 * time.Minute)
		page := newBubble(t, console.Engine{Runner: engine}).get(t, "/")
		page.has(t, http.StatusOK, `<span class="figure">2</span> due in queues`, "oldest waits since", "1h0m ago")
		page.row(t, `aria-label="1 due, 3 later"`).has(t, http.StatusOK, "deep", `class="due" width="25.00"`, `x="25.00" width="75.00"`, `class="length" width="100.00"`, "1h0m ago")
		page.row(t, `aria-label="1 due, 0 later"`).has(t, http.StatusOK, "flat", `class="due" width="25.00"`, `class="length" width="50.00"`, "30m0s ago")
	})
}

// The timeline of a record has its attempts, its owner, its lease and its notes, in their
// order.
func TestTimeline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op := semel.Define("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 2}})
		engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{
			Survive: store.NoFailure, Operations: []semel.Declared{op}, Lease: time.Minute,
		}))(t)
		call := op.Call(semel.Shared(), "key", "")
		b := newBubble(t, console.Engine{Runner: engine})
		fail := func() {
			_, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) { return "", errBank })
			check.Fails(t, err, "the call")
			pass(time.Hour)
		}
		fail()
		fail()
		check.Must(admin.Redrive(t.Context(), engine, admin.RedriveRequest{ID: call.ID(), Actor: "bob", Reason: "the bank is back"}))(t)
		pass(time.Minute)
		path := "/record?id=" + call.ID().String()
		_, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) {
			owner := fmt.Sprintf("%x", check.Must(admin.Read(t.Context(), engine, call.ID()))(t).Owner)
			_, line, _ := strings.Cut(b.get(t, path).has(t, http.StatusOK).body, `class="timeline"`)
			for _, text := range []string{
				"<b>Created</b>", "1 redrives", "<b>Attempt 1</b> ended: error", "hidden", "<b>Attempt 2</b> ended: error",
				"<b>bob</b> changed", "the bank is back", "<b>Now InProgress</b>, attempt 3, owner", owner, "its lease ends", "in 1m0s",
			} {
				_, rest, ok := strings.Cut(line, text)
				if !ok {
					t.Fatalf("the timeline has no %q after what is before it:\n%s", text, line)
				}
				line = rest
			}
			return "", nil
		})
		check.Require(t, err)
	})
}

// Dead letters are grouped by their errors without the numbers, and a group is listed and
// redriven without the others.
func TestDeadLettersByError(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	for i, text := range []string{"timeout after 31 ms", "timeout after 4 ms", "no such user: 77", "timeout after 500 ms"} {
		_, _, err := semel.Do(t.Context(), g.engine, g.mail.Call(semel.Shared(), fmt.Sprintf("letter-%d", i), input{}),
			func(context.Context) (string, error) { return "", errors.New(text) })
		check.Fails(t, err, "the call")
	}
	page := g.post(t, "dead", nil).has(t, http.StatusOK, "4 dead letters in 2 groups", "timeout after … ms", "no such user: …")
	g.get(t, "dead").has(t, http.StatusOK, "2 groups").hasNot(t, "timeout")
	row := page.row(t, "timeout after")
	row.has(t, http.StatusOK, "<b>3</b>")
	link := func(text string) string {
		before, _, _ := strings.Cut(row.body, `">`+text)
		return strings.ReplaceAll(before[strings.LastIndex(before, `"`)+1:], "&amp;", "&")
	}
	g.get(t, link("List")).has(t, http.StatusOK, "letter-0", "letter-1", "letter-3", "with this error").hasNot(t, "letter-2", "timeout")
	preview := g.get(t, link("Redrive")).has(t, http.StatusOK, "<b>3 records</b>").hasNot(t, "letter-2")
	g.post(t, "apply", url.Values{"action": {"redrive"}, "record": preview.tokens(), "reason": {"it answers"}}).has(t, http.StatusOK, "3 done")
	g.get(t, "dead").has(t, http.StatusOK, "1 dead letters in 1 groups")
}

// The page of retention shows the partitions, what is past its retention, and a journal.
func TestRetention(t *testing.T) {
	t.Parallel()
	kept := check.Must(journal.Open(filepath.Join(t.TempDir(), "journal")))(t)
	synctest.Test(t, func(t *testing.T) {
		op := semel.Define("op", semel.OperationOptions[string]{})
		engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
		run := func(key string) store.ID {
			call := op.Call(semel.Shared(), key, "")
			_, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) { return "", nil })
			check.Require(t, err)
			return call.ID()
		}
		old := run("old")
		pass(25 * time.Hour)
		id := run("new")
		check.Require(t, kept.Keep(journal.Entry{Record: check.Must(admin.Read(t.Context(), engine, id))(t), Step: "succeed"}))
		var unread error
		b := newBubble(t, console.Engine{Runner: engine, Journal: kept, Partitions: func(context.Context) ([]console.Partition, error) {
			at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
			return []console.Partition{{Name: "part_first", To: at}, {Name: "part_may", From: at, To: at.AddDate(0, 1, 0), Dropping: true}}, unread
		}})
		page := b.get(t, "/storage").has(t, http.StatusOK, `<span class="figure">1</span> records may be removed`, "Outcomes that are not recorded yet", id.String())
		page.row(t, "part_first").has(t, http.StatusOK, "all before", "2026-05-01 00:00:00 UTC").hasNot(t, "under way")
		page.row(t, "part_may").has(t, http.StatusOK, "2026-05-01 00:00:00 UTC", "2026-06-01 00:00:00 UTC", "under way")
		b.get(t, "/preview?action=purge").has(t, http.StatusOK, "1 records are past their retention")
		b.post(t, "/apply", url.Values{"action": {"purge"}, "reason": {"disk"}}).has(t, http.StatusOK, "1 removed")
		b.get(t, "/record?id="+old.String()).has(t, http.StatusNotFound)
		b.get(t, "/record?id="+id.String()).has(t, http.StatusOK, "Not recorded yet")
		unread = errBank
		b.get(t, "/storage").has(t, http.StatusOK, "The partitions cannot be read").hasNot(t, "part_may", "bank")
	})
}
