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

// trial is one case being run. Its functions that find something wrong end it,
// as those of a test do: they do not return.
type trial struct {
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
func (t *trial) end(v Verdict, format string, args ...any) {
	if !t.ended {
		t.verdict, t.detail, t.ended = v, fmt.Sprintf(format, args...), true
	}
	runtime.Goexit()
}

// lasting returns a context for putting things back in order, which is done also
// when the trial's time is over.
func (t *trial) lasting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.ctx), orderly)
}

// orderly bounds each step of putting things back in order.
const orderly = 10 * time.Second

// failf ends the trial: the statement does not hold.
func (t *trial) failf(format string, args ...any) {
	t.end(t.c.Level.failed(), format, args...)
}

// notShown ends the trial: nothing can be found out, for that reason.
func (t *trial) notShown(format string, args ...any) { t.end(NotShown, format, args...) }

// informf ends the trial: it was found out, and says neither right nor wrong.
func (t *trial) inform(text string) { t.end(Info, "%s", text) }

// note adds to what is told of a case that holds. The same note is added once.
func (t *trial) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// name draws a name for effects that no other case uses.
func (t *trial) name() string {
	return "case" + t.c.ID + "-" + strings.ToLower(rand.Text())
}

// fresh draws a key that was never used.
func fresh() string { return uuid.NewString() }

// quoted is a key as a structured string.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// line is a key as this server takes it.
func (t *trial) line(key string) string {
	if t.profile.takes("string") {
		return quoted(key)
	}
	return key
}

// asking is an ordinary request with a new key and a new name.
func (t *trial) asking() ask {
	return ask{op: t.name(), keys: []string{t.line(fresh())}}
}

// try sends a, and returns what came of it.
func (t *trial) try(a ask) (*answer, error) {
	m := t.message(a)
	got, err := t.server.exchange(t.ctx, m)
	if err == nil {
		t.record(a.op, m, got)
	}
	return got, err
}

// send sends a and returns the answer.
func (t *trial) send(a ask) *answer {
	got, err := t.try(a)
	if err != nil {
		t.failf("no answer: %v", err)
	}
	return got
}

// settled sends a until the answer is another than that it is in progress, as a
// client does.
func (t *trial) settled(a ask) *answer {
	var got *answer
	t.until("an answer other than in progress", func() bool {
		got = t.send(a)
		if got.busy() {
			return false
		}
		if t.profile.assumes("statuses."+inProgress) && got.status >= 400 && got.header.Get("Retry-After") != "" {
			return false
		}
		return got.status != t.profile.Statuses[inProgress] || !t.says(got, inProgress)
	})
	return got
}

// busy tells whether the server is to be asked again, as it says itself.
func (a *answer) busy() bool {
	return a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
}

// must ends the trial when a part of the fixture contract fails.
func (t *trial) must(err error) {
	if err != nil {
		t.failf("the fixture: %v", err)
	}
}

// rest lets d go by.
func (t *trial) rest(d time.Duration) {
	select {
	case <-t.ctx.Done():
	case <-time.After(d):
	}
}

// pollEvery is how long a trial waits before it looks again.
const pollEvery = 10 * time.Millisecond

// until waits for what is to happen, as long as the trial lasts.
func (t *trial) until(what string, happened func() bool) {
	for !happened() {
		if t.ctx.Err() != nil {
			t.failf("waited in vain for %s", what)
		}
		t.rest(pollEvery)
	}
}
