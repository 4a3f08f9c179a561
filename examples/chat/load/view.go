package load

import "fmt"

// view is what a client knows of a group. It applies changes in order, ignores changes
// that it has, and reports a gap.
type view struct {
	known    int64            // the last change that was applied
	messages map[int64]string // texts by number
	gaps     int
	ignored  int
	wrong    error // the first contradiction
}

// apply applies a pushed change. It reports false if earlier changes are missing.
func (v *view) apply(p push) bool {
	switch {
	case p.Change <= v.known:
		v.ignored++
		return true
	case p.Change > v.known+1 || p.Push == "gap":
		v.gaps++
		return false
	}
	if p.Push == "message" {
		v.put(p.Message)
	}
	v.known = p.Change
	return true
}

// put stores a message. Nothing edits messages during a run, so a number that comes
// again with another text is a contradiction.
func (v *view) put(m message) {
	if old, ok := v.messages[m.Seq]; ok && old != m.Text && v.wrong == nil {
		v.wrong = fmt.Errorf("message %d was %q and is %q", m.Seq, old, m.Text)
	}
	v.messages[m.Seq] = m.Text
}
