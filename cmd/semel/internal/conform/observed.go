package conform

import (
	"slices"
	"strings"
)

// failUnlessAssumed ends the case because the server's behavior differs from
// that member of its profile. If the member is only assumed, the behavior is
// reported and is no failure, because the draft leaves it open. Use it for safe
// behavior only; a double effect always fails.
func (t *caseRun) failUnlessAssumed(member, format string, args ...any) {
	if t.profile.assumes(member) {
		t.end(Info, "not declared ("+member+"), and seen: "+format, args...)
	}
	t.failf(format, args...)
}

// anyClientError reports whether a refusal may have any status from 400 to 499.
// That is so if the server declares no statuses for these codes; the draft
// names one with a SHOULD at most, and cases of that level test it.
func (t *caseRun) anyClientError(codes []string) bool {
	return t.c.Level != Should && !slices.ContainsFunc(codes, func(code string) bool { return !t.profile.assumes("statuses." + code) })
}

// reportObserved ends the case with an observation about a member that the
// server does not declare.
func (t *caseRun) reportObserved(member string, seen ...string) {
	t.end(Info, "not declared (%s), and seen: %s", member, strings.Join(seen, "; "))
}
