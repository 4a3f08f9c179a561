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

// caseRun is one run of a case. Like the functions of testing.T, its functions
// that report a problem end the case and do not return.
type caseRun struct {
	*session

	ctx     context.Context //nolint:containedctx // a run of a case has the lifetime of its context
	c       Case
	verdict Verdict
	detail  string
	notes   []string
	ended   bool
	seen    exchanges
}

// end ends the case. A problem during the cleanup does not replace the original
// result.
func (t *caseRun) end(v Verdict, format string, args ...any) {
	if !t.ended {
		t.verdict, t.detail, t.ended = v, fmt.Sprintf(format, args...), true
	}
	runtime.Goexit()
}

// cleanupContext returns a context for the cleanup, which also runs after the
// case's time has expired.
func (t *caseRun) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.ctx), cleanupTimeout)
}

// cleanupTimeout bounds each step of the cleanup.
const cleanupTimeout = 10 * time.Second

// failf ends the case: the statement does not hold.
func (t *caseRun) failf(format string, args ...any) {
	t.end(t.c.Level.failed(), format, args...)
}

// notShown ends the case: it could not be tested. The text is the reason.
func (t *caseRun) notShown(format string, args ...any) { t.end(NotShown, format, args...) }

// inform ends the case with an observation that is neither right nor wrong.
func (t *caseRun) inform(text string) { t.end(Info, "%s", text) }

// note adds an observation to a case that holds. The same text is added once.
func (t *caseRun) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// newName returns a name for effects that no other case uses.
func (t *caseRun) newName() string {
	return "case" + t.c.ID + "-" + strings.ToLower(rand.Text())
}

// newKey returns an unused key.
func newKey() string { return uuid.NewString() }

// quoted returns a key as a structured-field string.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// keyLine returns a key in a form that the server accepts.
func (t *caseRun) keyLine(key string) string {
	if t.profile.takes("string") {
		return quoted(key)
	}
	return key
}

// newRequest returns an ordinary request with a new key and a new name.
func (t *caseRun) newRequest() request {
	return request{op: t.newName(), keys: []string{t.keyLine(newKey())}}
}

// try sends a and returns the answer or the error.
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

// sendUntilSettled sends a, and retries like a client while the answer is "in
// progress".
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

// inProgress reports whether the answer asks the client to retry later.
func (a *answer) inProgress() bool {
	return a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
}

// must ends the case if a part of the fixture contract fails.
func (t *caseRun) must(err error) {
	if err != nil {
		t.failf("the fixture: %v", err)
	}
}

// sleep waits for d.
func (t *caseRun) sleep(d time.Duration) {
	select {
	case <-t.ctx.Done():
	case <-time.After(d):
	}
}

// pollEvery is the poll interval of until.
const pollEvery = 10 * time.Millisecond

// until polls happened until it returns true or the case's time expires.
func (t *caseRun) until(what string, happened func() bool) {
	for !happened() {
		if t.ctx.Err() != nil {
			t.failf("timed out waiting for %s", what)
		}
		t.sleep(pollEvery)
	}
}
