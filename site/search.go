package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// aliases is the file with the words that readers search for and pages do not say.
const aliases = "site/aliases.txt"

// readAliases reads lines of the form "docs/stores.md: postgres, mysql". The words are for the
// page and its translation.
func (s *site) readAliases() error {
	text, err := os.ReadFile(filepath.Join(s.source, filepath.FromSlash(aliases)))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, words, _ := strings.Cut(line, ":")
		p, is := s.pages[name]
		if !is {
			s.fail(&page{source: aliases}, "the page %q does not exist", name)
			continue
		}
		for word := range strings.SplitSeq(words, ",") {
			p.aliases = append(p.aliases, strings.TrimSpace(word))
		}
		if to, is := s.pages[translation(name)]; is {
			to.aliases = p.aliases
		}
	}
	return nil
}

// rank is how much a page counts in the search: pages that explain the inside of Semel count less.
func (p *page) rank() float64 {
	for _, r := range []struct {
		prefix string
		rank   float64
	}{
		{"docs/decisions/README", 0.35},
		{"docs/conformance/README", 0.35},
		{"docs/decisions/", 0.15},
		{"docs/conformance/", 0.15},
		{"docs/README", 0.15},
		{"docs/architecture", 0.4},
		{"docs/dependencies", 0.4},
		{"docs/evidence", 0.4},
		{"docs/other-databases", 0.4},
		{"docs/vocabulary", 0.4},
		{"docs/http-draft", 0.4},
		{"CONTRIBUTING", 0.4},
		{"docs/protocol", 0.4},
		{"docs/errors", 2}, // names of errors are in its tables, and on many other pages
	} {
		if strings.HasPrefix(p.source, r.prefix) {
			return r.rank
		}
	}
	return 1
}

// searchIndex is a script with the text of all sections. The Chinese index has the English
// text of pages that are not translated. The changelog is left out: it names what is gone.
func (s *site) searchIndex(of string) ([]byte, error) {
	type entry struct {
		ID      string `json:"i"`
		Heading string `json:"h"`
		Text    string `json:"t"`
		Code    string `json:"c,omitempty"`
	}
	type pageEntry struct {
		Title    string   `json:"p"`
		Link     string   `json:"l"`
		Aliases  []string `json:"a,omitempty"`
		Rank     float64  `json:"r"`
		Sections []entry  `json:"s"`
	}
	var pages []pageEntry
	for _, p := range s.sorted() {
		_, translated := s.pages[translation(p.source)]
		if p.source == "CHANGELOG.md" || language(p) != of && (of == "en" || translated) {
			continue
		}
		shown := pageEntry{Title: p.title, Link: p.target, Aliases: p.aliases, Rank: p.rank()}
		for i := range p.sections {
			h := &p.sections[i]
			shown.Sections = append(shown.Sections, entry{h.ID, h.Title, words(h.text.String()), words(h.code.String())})
		}
		pages = append(pages, shown)
	}
	index, err := json.Marshal(pages)
	return append(append([]byte("window.semelSearch("), index...), ")\n"...), err
}

// words returns a text with single spaces.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
