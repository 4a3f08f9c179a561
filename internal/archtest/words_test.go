package archtest_test

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vagueWords are pronouns that hide the subject of a sentence: the caller, the worker,
// the transaction.
var vagueWords = regexp.MustCompile(`(?i)\b(?:who|whoever|nobody|somebody|whatever)\b`)

// maxVagueWords is how many of 1,000 words of comments and documents may be vague.
const maxVagueWords = 1

// TestCommentsNameTheirSubject counts vague words in comments and documents.
func TestCommentsNameTheirSubject(t *testing.T) {
	words, vague := 0, make(map[string]int)
	count := func(name, text string) {
		words += len(strings.Fields(text))
		if n := len(vagueWords.FindAllString(text, -1)); n > 0 {
			vague[name] += n
		}
	}
	for _, f := range goFiles(t) {
		for _, group := range f.ast.Comments {
			count(f.name, group.Text())
		}
	}
	for _, name := range tracked(t, "*.md") {
		count(name, read(t, name))
	}
	total := 0
	for _, n := range vague {
		total += n
	}
	if total*1000 <= words*maxVagueWords {
		return
	}
	t.Errorf("%d of %d words in comments and documents are vague, want at most %d in 1,000", total, words, maxVagueWords)
	worst := slices.SortedFunc(maps.Keys(vague), func(a, b string) int { return cmp.Compare(vague[b], vague[a]) })
	for _, name := range worst[:min(20, len(worst))] {
		t.Errorf("%s has %d", name, vague[name])
	}
}
