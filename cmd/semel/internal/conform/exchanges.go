package conform

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// Exchange is a request of a case and its answer.
type Exchange struct {
	// Request is a curl command line that sends the same request. A principal's
	// ${NAME} is not expanded.
	Request string `json:"request"`
	// Answer has the status, the relevant headers, and the beginning of the
	// body.
	Answer string `json:"answer"`
}

// exchanges are the last requests of a case, and the successful answers.
type exchanges struct {
	mu        sync.Mutex
	last      []Exchange
	successes map[string]map[string]bool // the different bodies, by op
}

// maxShownExchanges is the number of exchanges in a failure report: the first
// request, its retry, and a different request.
const maxShownExchanges = 3

// record stores the exchange of m and got. m is about op.
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

// lastExchanges returns the exchanges for a failure report. Other requests of
// the case may still be in flight.
func (t *caseRun) lastExchanges() []Exchange {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	return slices.Clone(t.seen.last)
}

// successes returns the number of different successful answers for op.
func (t *caseRun) successes(op string) int {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	return len(t.seen.successes[op])
}

// maxShownBody limits the body in a report, in bytes.
const maxShownBody = 300

// curl returns a command line that sends m. A header with ${NAME} in the
// profile is not expanded, because its value is a secret.
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

// secret returns the unexpanded value of a principal's header, if it names an
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

// shellQuoted returns text as one word for a shell. Bytes that are not
// printable are escaped.
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

// answerLine returns got as one line.
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
