package conform

import (
	"encoding/json"
	"slices"
	"strings"
)

// UndeclaredProfile is the profile of a server that declares nothing: each member has its
// usual value, as an assumption.
func UndeclaredProfile() Profile {
	p := DefaultProfile()
	text, err := json.Marshal(p)
	if err != nil { // not reachable: texts and numbers
		return p
	}
	p.Assumed = members(text)
	return p
}

// members lists the members of a JSON object by their names. A member of a member is
// "key.forms".
func members(text []byte) []string {
	var all []string
	var object map[string]json.RawMessage
	_ = json.Unmarshal(text, &object) // what cannot be read was refused before, or is no object
	for name, value := range object {
		all = append(all, name)
		for _, inner := range members(value) {
			all = append(all, name+"."+inner)
		}
	}
	slices.Sort(all)
	return all
}

// declare removes the members of text from those that are assumed.
func (p *Profile) declare(text []byte) {
	said := members(text)
	p.Assumed = slices.DeleteFunc(slices.Clone(p.Assumed), func(name string) bool { return slices.Contains(said, name) })
	if len(p.Assumed) == 0 {
		p.Assumed = nil
	}
}

// assumes reports whether neither the server nor the profile file has that member.
func (p *Profile) assumes(member string) bool {
	return slices.Contains(p.Assumed, member)
}

// failUnlessAssumed ends the trial because the server does otherwise than that member of its profile
// says. What the server does not declare is reported, and is no failure: the draft leaves
// it open. It is for what is safe; a double effect fails in any case.
func (t *caseRun) failUnlessAssumed(member, format string, args ...any) {
	if t.profile.assumes(member) {
		t.end(Info, "not declared ("+member+"), and seen: "+format, args...)
	}
	t.failf(format, args...)
}

// anyClientError reports whether a refusal may have any status from 400 to 499, because the
// server declares none for these codes and the draft names one with a SHOULD at most,
// which cases of that level are about.
func (t *caseRun) anyClientError(codes []string) bool {
	return t.c.Level != Should && !slices.ContainsFunc(codes, func(code string) bool { return !t.profile.assumes("statuses." + code) })
}

// reportObserved ends the trial with what was seen of a member that the server does not declare.
func (t *caseRun) reportObserved(member string, seen ...string) {
	t.end(Info, "not declared (%s), and seen: %s", member, strings.Join(seen, "; "))
}
