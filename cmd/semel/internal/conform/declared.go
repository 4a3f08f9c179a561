package conform

import (
	"encoding/json"
	"slices"
	"strings"
)

// UndeclaredProfile is the profile of a server that declares nothing: each
// member is assumed to have its usual value.
func UndeclaredProfile() Profile {
	p := DefaultProfile()
	text, err := json.Marshal(p)
	if err != nil { // not reachable: strings and numbers
		return p
	}
	p.Assumed = members(text)
	return p
}

// members lists the members of a JSON object by name. Nested members have names
// such as "key.forms".
func members(text []byte) []string {
	var all []string
	var object map[string]json.RawMessage
	_ = json.Unmarshal(text, &object) // an invalid text was rejected before, or is not an object
	for name, value := range object {
		all = append(all, name)
		for _, inner := range members(value) {
			all = append(all, name+"."+inner)
		}
	}
	slices.Sort(all)
	return all
}

// declare removes the members in text from the assumed members.
func (p *Profile) declare(text []byte) {
	said := members(text)
	p.Assumed = slices.DeleteFunc(slices.Clone(p.Assumed), func(name string) bool { return slices.Contains(said, name) })
	if len(p.Assumed) == 0 {
		p.Assumed = nil
	}
}

// assumes reports whether neither the server nor the profile file has the
// member.
func (p *Profile) assumes(member string) bool {
	return slices.Contains(p.Assumed, member)
}

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
