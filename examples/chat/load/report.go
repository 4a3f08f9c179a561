package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Report is the result of a run.
type Report struct {
	Clients, Accounts, Groups, Messages int
	// Took is the time from the first message until all views were complete.
	Took time.Duration
	// Deliveries is how many messages were pushed to clients, each client counted.
	Deliveries int
	// P50 and P99 are times from submitting a message to its delivery by a push. They
	// include the time in which its sender had no connection.
	P50, P99 time.Duration
	// Reconnects is how often a client lost or dropped its connection. Gaps is how often a
	// client found that a push was missing and fetched it; Ignored how often it received
	// one that it had.
	Reconnects, Gaps, Ignored int
	// Stored is the number of messages in the groups, with those of the server itself.
	Stored int
}

// Write prints the report.
func (r Report) Write(w io.Writer) {
	_, _ = fmt.Fprintf(w, `clients       %d of %d accounts in %d groups
messages      %d sent, %d stored (with the server's own), in %.1f s
deliveries    %d (%.0f per second)
send to push  p50 %v, p99 %v
connections   %d lost or dropped; %d gaps filled, %d repeated pushes ignored
`, r.Clients, r.Accounts, r.Groups, r.Messages, r.Stored, r.Took.Seconds(),
		r.Deliveries, float64(r.Deliveries)/r.Took.Seconds(), r.P50.Round(100*time.Microsecond), r.P99.Round(100*time.Microsecond),
		r.Reconnects, r.Gaps, r.Ignored)
}

// ViolationError is a promise of the chat that a run found broken.
type ViolationError struct{ What string }

// Error returns the text.
func (v *ViolationError) Error() string { return "load: " + v.What }

// maxViolationErrors limits how many violations are listed.
const maxViolationErrors = 20

// verify compares the groups in the database with what was sent and with the view of each
// client: each message is stored once, numbers have no gaps, and each view is complete.
func (r *run) verify(ctx context.Context, report *Report) error {
	var found []error
	broken := func(format string, args ...any) {
		if len(found) < maxViolationErrors {
			found = append(found, &ViolationError{fmt.Sprintf(format, args...)})
		}
	}
	stored := map[string]int{}
	for i, group := range r.groups {
		all, err := r.api.history(ctx, r.membersOf(i)[0], group)
		if err != nil {
			return fmt.Errorf("load: read the history of group %s: %w", group, err)
		}
		report.Stored += len(all)
		for k, m := range all {
			if m.Seq != int64(k+1) {
				broken("group %s: message %d follows %d", group, m.Seq, k)
			}
			if _, ours := submitted(m.Text); ours {
				stored[m.Text]++
			}
		}
		for k, c := range r.clients {
			if v := c.views[group]; v != nil {
				compare(v, all, r.target[group], func(what string) { broken("client %d, group %s: %s", k, group, what) })
			}
		}
	}
	for text, times := range stored {
		if times != 1 {
			broken("message %q is stored %d times", text, times)
		}
	}
	if len(stored) != r.Messages || r.acknowledged.Load() != int64(r.Messages) {
		broken("%d messages were sent, %d acknowledged, %d stored", r.Messages, r.acknowledged.Load(), len(stored))
	}
	return errors.Join(found...)
}

// compare compares a view, which must have reached a change, with the messages of its group.
// The server may have written messages of its own since then.
func compare(v *view, stored []message, target int64, broken func(string)) {
	if v.wrong != nil {
		broken(v.wrong.Error())
	}
	known := 0
	for _, m := range stored {
		got, ok := v.messages[m.Seq]
		if m.Change > max(target, v.known) && !ok {
			continue
		}
		known++
		if !ok || got != m.Text {
			broken(fmt.Sprintf("message %d is %q, want %q", m.Seq, got, m.Text))
		}
	}
	if len(v.messages) > known {
		broken(fmt.Sprintf("%d messages, the group has %d", len(v.messages), known))
	}
}
