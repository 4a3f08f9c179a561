package conform

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// Exchange is a request of a case and what it was answered.
type Exchange struct {
	// Request is a command line of curl that sends the same request. A principal's ${NAME}
	// is left in it.
	Request string `json:"request"`
	// Answer is the status, the headers that matter here, and the beginning of the body.
	Answer string `json:"answer"`
}

// exchanges are the last requests of a trial, and the successes that were answered.
type exchanges struct {
	mu        sync.Mutex
	last      []Exchange
	successes map[string]map[string]bool // by op, the different bodies
}

// maxShownExchanges is how many exchanges a failure shows: the first request, its retry, and
// what the server made of another one.
const maxShownExchanges = 3

// record remembers that m, which is about op, was answered with got.
func (t *caseRun) record(op string, m message, got *answer) {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	if got.status <= 299 {
		if t.seen.successes == nil {
			t.seen.successes = make(map[string]map[string]bool)
		}
		if t.seen.successes[op] == nil {
			t.seen.successes[op] = make(map[string]bool)
		}
		t.seen.successes[op][string(got.body)] = true
	}
	t.seen.last = append(t.seen.last, Exchange{t.curl(m), t.answerLine(got)})
	t.seen.last = t.seen.last[max(0, len(t.seen.last)-maxShownExchanges):]
}

// lastExchanges returns those that a failure shows. Requests of the trial may still be on
// their way.
func (t *caseRun) lastExchanges() []Exchange {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	return slices.Clone(t.seen.last)
}

// successes is how many different successes op was answered with.
func (t *caseRun) successes(op string) int {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	return len(t.seen.successes[op])
}

// maxShownBody is how much of a body is shown, in bytes.
const maxShownBody = 300

// curl is a command line that sends m. A header that the profile has as ${NAME} stays so,
// because it is a secret.
func (t *caseRun) curl(m message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -i -X %s %s", m.method, shellQuoted(t.server.base.String()+m.path))
	for _, l := range m.lines {
		switch secret := t.profile.Suite.secret(l); {
		case secret != "":
			fmt.Fprintf(&b, ` -H "%s: %s"`, l.name, secret)
		case l.value == "":
			fmt.Fprintf(&b, " -H %s", shellQuoted(l.name+";"))
		default:
			fmt.Fprintf(&b, " -H %s", shellQuoted(l.name+": "+l.value))
		}
	}
	if m.chunked {
		b.WriteString(" -H 'Transfer-Encoding: chunked'")
	}
	switch {
	case m.body == nil:
	case len(m.body) > maxShownBody:
		fmt.Fprintf(&b, " --data-binary @body # of %d bytes", len(m.body))
	default:
		fmt.Fprintf(&b, " --data-binary %s", shellQuoted(string(m.body)))
	}
	return b.String()
}

// secret is the value of a principal's header as the profile has it, if it names an
// environment variable.
func (s *Suite) secret(l line) string {
	for _, headers := range s.Principals {
		for name, value := range headers {
			if http.CanonicalHeaderKey(name) == l.name && strings.Contains(value, "$") && os.ExpandEnv(value) == l.value {
				return value
			}
		}
	}
	return ""
}

// shellQuoted is text as one word of a shell. Bytes that are not printable are escaped.
func shellQuoted(text string) string {
	plain := true
	for i := range len(text) {
		plain = plain && text[i] >= ' ' && text[i] <= '~'
	}
	if plain {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c >= ' ' && c <= '~':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	b.WriteString("'")
	return b.String()
}

// answerLine is got in one line.
func (t *caseRun) answerLine(got *answer) string {
	parts := []string{strings.TrimSpace(fmt.Sprintf("%d %s", got.status, http.StatusText(got.status)))}
	for _, name := range []string{t.profile.ReplayHeader, "Retry-After", "Location", "Content-Type"} {
		if value := got.header.Get(name); name != "" && value != "" {
			parts = append(parts, name+": "+value)
		}
	}
	text := strings.Join(parts, ", ")
	body := strings.TrimSpace(string(got.body[:min(len(got.body), maxShownBody)]))
	if body != "" {
		text += " | " + strings.Join(strings.Fields(body), " ")
	}
	return text
}
