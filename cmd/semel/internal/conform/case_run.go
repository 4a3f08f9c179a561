package conform

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// caseRun is one case being run. Its functions that find something wrong end it,
// as those of a test do: they do not return.
type caseRun struct {
	*session

	ctx     context.Context //nolint:containedctx // a trial lives as long as its context
	c       Case
	verdict Verdict
	detail  string
	notes   []string
	ended   bool
	seen    exchanges
}

// end ends the trial. What is found while things are put back in order does not
// hide what ended it.
func (t *caseRun) end(v Verdict, format string, args ...any) {
	if !t.ended {
		t.verdict, t.detail, t.ended = v, fmt.Sprintf(format, args...), true
	}
	runtime.Goexit()
}

// cleanupContext returns a context for putting things back in order, which is done also
// when the trial's time is over.
func (t *caseRun) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.ctx), cleanupTimeout)
}

// cleanupTimeout bounds each step of putting things back in order.
const cleanupTimeout = 10 * time.Second

// failf ends the trial: the statement does not hold.
func (t *caseRun) failf(format string, args ...any) {
	t.end(t.c.Level.failed(), format, args...)
}

// notShown ends the trial: nothing can be found out, for that reason.
func (t *caseRun) notShown(format string, args ...any) { t.end(NotShown, format, args...) }

// informf ends the trial: it was found out, and says neither right nor wrong.
func (t *caseRun) inform(text string) { t.end(Info, "%s", text) }

// note adds to what is told of a case that holds. The same note is added once.
func (t *caseRun) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// newName draws a name for effects that no other case uses.
func (t *caseRun) newName() string {
	return "case" + t.c.ID + "-" + strings.ToLower(rand.Text())
}

// newKey draws a key that was never used.
func newKey() string { return uuid.NewString() }

// quoted is a key as a structured string.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// keyLine is a key as this server takes it.
func (t *caseRun) keyLine(key string) string {
	if t.profile.takes("string") {
		return quoted(key)
	}
	return key
}

// newRequest is an ordinary request with a new key and a new name.
func (t *caseRun) newRequest() request {
	return request{op: t.newName(), keys: []string{t.keyLine(newKey())}}
}

// try sends a, and returns what came of it.
func (t *caseRun) try(a request) (*answer, error) {
	m := t.message(a)
	got, err := t.server.exchange(t.ctx, m)
	if err == nil {
		t.record(a.op, m, got)
	}
	return got, err
}

// send sends a and returns the answer.
func (t *caseRun) send(a request) *answer {
	got, err := t.try(a)
	if err != nil {
		t.failf("no answer: %v", err)
	}
	return got
}

// sendUntilSettled sends a until the answer is another than that it is in progress, as a
// client does.
func (t *caseRun) sendUntilSettled(a request) *answer {
	var got *answer
	t.until("an answer other than in progress", func() bool {
		got = t.send(a)
		if got.inProgress() {
			return false
		}
		if t.profile.assumes("statuses."+inProgress) && got.status >= 400 && got.header.Get("Retry-After") != "" {
			return false
		}
		return got.status != t.profile.Statuses[inProgress] || !t.hasCode(got, inProgress)
	})
	return got
}

// inProgress tells whether the server is to be asked again, as it says itself.
func (a *answer) inProgress() bool {
	return a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
}

// must ends the trial when a part of the fixture contract fails.
func (t *caseRun) must(err error) {
	if err != nil {
		t.failf("the fixture: %v", err)
	}
}

// sleep lets d go by.
func (t *caseRun) sleep(d time.Duration) {
	select {
	case <-t.ctx.Done():
	case <-time.After(d):
	}
}

// pollEvery is how long a trial waits before it looks again.
const pollEvery = 10 * time.Millisecond

// until waits for what is to happen, as long as the trial lasts.
func (t *caseRun) until(what string, happened func() bool) {
	for !happened() {
		if t.ctx.Err() != nil {
			t.failf("timed out waiting for %s", what)
		}
		t.sleep(pollEvery)
	}
}
