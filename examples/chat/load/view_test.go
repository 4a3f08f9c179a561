package load

import "testing"

// TestViewFindsContradictions checks the checker: each row is a view that verify must
// refuse or accept.
func TestViewFindsContradictions(t *testing.T) {
	t.Parallel()
	at := func(change, seq int64, text string) push {
		return push{Push: "message", Change: change, Message: message{Seq: seq, Change: change, Text: text}}
	}
	stored := []message{{Seq: 1, Change: 1, Text: "a"}, {Seq: 2, Change: 2, Text: "b"}}
	for _, test := range []struct {
		name   string
		pushes []push
		wrong  int
	}{
		{"complete", []push{at(1, 1, "a"), {Push: "group", Change: 2}, at(3, 2, "b")}, 0},
		{"repeated", []push{at(1, 1, "a"), at(1, 1, "a"), at(2, 2, "b")}, 0},
		{"gap that was not filled", []push{at(2, 2, "b")}, 2},
		{"lost last", []push{at(1, 1, "a")}, 1},
		{"other text", []push{at(1, 1, "a"), at(2, 2, "c")}, 1},
		{"one number twice", []push{at(1, 1, "a"), at(2, 1, "b"), at(3, 2, "b")}, 2},
		{"message that is not stored", []push{at(1, 1, "a"), at(2, 2, "b"), at(3, 3, "c")}, 1},
		{"gap that was announced", []push{at(1, 1, "a"), {Push: "gap", Change: 2}}, 1},
	} {
		v := view{messages: map[int64]string{}}
		for _, p := range test.pushes {
			v.apply(p)
		}
		var found []string
		compare(&v, stored, 2, func(what string) { found = append(found, what) })
		if len(found) != test.wrong {
			t.Errorf("%s: %q, want %d contradictions", test.name, found, test.wrong)
		}
	}
}
