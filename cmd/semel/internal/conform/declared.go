package conform

import (
	"encoding/json"
	"slices"
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
