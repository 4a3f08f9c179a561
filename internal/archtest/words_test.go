//go:build !race

package archtest_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
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
	for _, name := range repository.Files(t, "*.md") {
		count(name, repository.Read(t, name))
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

// TestTypeNamesAreStandardTerms: the words of unexported type names are terms of
// testdata/terms.txt or docs/vocabulary.md. A new word needs a line in one of the
// two, so that its author asks whether the field knows it.
func TestTypeNamesAreStandardTerms(t *testing.T) {
	terms := knownTerms(t)
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for _, d := range f.ast.Decls {
			decl, isDecl := d.(*ast.GenDecl)
			if !isDecl || decl.Tok != token.TYPE {
				continue
			}
			for _, spec := range decl.Specs {
				name := spec.(*ast.TypeSpec).Name
				if name.IsExported() {
					continue
				}
				for _, word := range wordsOf(name.Name) {
					if !isTerm(terms, word) {
						t.Errorf("%s:%d: type %s: %q is not a known term", f.name, f.line(name.Pos()), name.Name, word)
					}
				}
			}
		}
	}
}

// wordInName matches one word of a name in mixed caps.
var wordInName = regexp.MustCompile(`[A-Z]+(?:[a-z]+|\b)|[A-Z]?[a-z]+|[A-Z]+`)

// wordsOf returns the words of a name, in lower case and without digits.
func wordsOf(name string) []string {
	words := wordInName.FindAllString(name, -1)
	for i, word := range words {
		words[i] = strings.ToLower(word)
	}
	return words
}

// isTerm reports whether a word is a term, or a plural, participle or agent of one.
func isTerm(terms map[string]bool, word string) bool {
	if terms[word] {
		return true
	}
	for _, suffix := range []string{"s", "es", "d", "ed", "ing", "r", "er", "or", "able"} {
		stem, ok := strings.CutSuffix(word, suffix)
		if !ok {
			continue
		}
		doubled := len(stem) > 1 && stem[len(stem)-1] == stem[len(stem)-2]
		if terms[stem] || terms[stem+"e"] || doubled && terms[stem[:len(stem)-1]] {
			return true
		}
	}
	stem, ok := strings.CutSuffix(word, "ies")
	return ok && terms[stem+"y"]
}

// knownTerms returns the words of testdata/terms.txt and of the first column of each
// table in docs/vocabulary.md.
func knownTerms(t *testing.T) map[string]bool {
	t.Helper()
	terms := make(map[string]bool)
	for line := range strings.Lines(repository.Read(t, "internal/archtest/testdata/terms.txt")) {
		if !strings.HasPrefix(line, "#") {
			for word := range strings.FieldsSeq(line) {
				terms[word] = true
			}
		}
	}
	for line := range strings.Lines(repository.Read(t, "docs/vocabulary.md")) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, word := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(cells[1], -1) {
				for _, part := range wordsOf(word) {
					terms[part] = true
				}
			}
		}
	}
	if len(terms) < 200 {
		t.Fatalf("%d terms", len(terms))
	}
	return terms
}

// TestIsTerm: words that no field knows are not terms.
func TestIsTerm(t *testing.T) {
	terms := knownTerms(t)
	for word, want := range map[string]bool{
		"lease": true, "queries": true, "swapper": true, "batched": true,
		"stands": false, "told": false, "twin": false, "whoever": false, "looks": false,
	} {
		check.Equal(t, isTerm(terms, word), want, "isTerm(%q)", word)
	}
}

// vagueNameWords are words that hide what a name means.
var vagueNameWords = regexp.MustCompile(`^(?:who|whoever|whose|nobody|somebody|everybody|whatever|told|tells?|stands?|stood|twins?)$`)

// TestNamesNameTheirSubject checks the names of types and functions, of tests too.
func TestNamesNameTheirSubject(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasPrefix(f.name, "store/postgres/") {
			continue // its names are not yet renamed
		}
		check := func(name *ast.Ident) {
			if slices.ContainsFunc(wordsOf(name.Name), vagueNameWords.MatchString) {
				t.Errorf("%s:%d: the name %s is vague", f.name, f.line(name.Pos()), name.Name)
			}
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						check(s.Name)
					}
				}
			}
		}
	}
}
