package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/styles"
)

//go:embed assets
var assets embed.FS

const (
	chinese = ".zh-CN"
	// navigation is the page with the headings and the lists of the navigation.
	navigation = "docs/README.md"
)

// emptyHead is the head of a column without a name, which is none for a screen reader.
var emptyHead = regexp.MustCompile(`<th([^>]*)></th>`)

// site is the set of all pages, by the path of their Markdown file.
type site struct {
	source string
	pages  map[string]*page
	images map[string]bool // the files that pages show
	errs   []error
}

// build writes the site of the repository at source to the directory out, and returns the
// number of pages.
func build(source, out string) (int, error) {
	s := &site{source: source, pages: make(map[string]*page), images: make(map[string]bool)}
	if err := s.find(); err != nil {
		return 0, err
	}
	if err := s.readAliases(); err != nil {
		return 0, err
	}
	for _, p := range s.sorted() {
		s.render(p)
	}
	s.checkLinks()
	english, chinesePages := s.navigation(navigation), s.navigation(translation(navigation))
	if err := errors.Join(s.errs...); err != nil {
		return 0, err
	}
	if err := os.RemoveAll(out); err != nil {
		return 0, err
	}
	layout, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return 0, err
	}
	for _, p := range s.sorted() {
		groups := english
		if p.chinese() {
			groups = chinesePages
		}
		var b bytes.Buffer
		if err := layout.Execute(&b, s.view(p, groups)); err != nil {
			return 0, fmt.Errorf("%s: %w", p.source, err)
		}
		if err := write(out, p.target, emptyHead.ReplaceAll(b.Bytes(), []byte("<td$1></td>"))); err != nil {
			return 0, err
		}
	}
	return len(s.pages), s.writeAssets(out)
}

// find reads the Markdown files.
func (s *site) find() error {
	names := []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	err := filepath.WalkDir(filepath.Join(s.source, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		name, err = filepath.Rel(s.source, name)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(s.source, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		s.pages[name] = &page{source: name, target: target(name), text: text, ids: make(map[string]bool)}
	}
	return nil
}

// sorted returns the pages in a fixed order.
func (s *site) sorted() []*page {
	pages := make([]*page, 0, len(s.pages))
	for _, p := range s.pages {
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b *page) int { return strings.Compare(a.source, b.source) })
	return pages
}

// fail records an error; the build goes on and reports all errors.
func (s *site) fail(p *page, format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("%s: %w", p.source, fmt.Errorf(format, args...)))
}

// checkLinks looks for the heading of each link between pages.
func (s *site) checkLinks() {
	for _, p := range s.sorted() {
		for _, l := range p.links {
			if l.fragment != "" && !s.pages[l.source].ids[l.fragment] {
				s.fail(p, "link to #%s of %s, which has no such heading", l.fragment, l.source)
			}
		}
	}
}

// target is the path of the HTML file for a Markdown file.
func target(source string) string {
	dir, name := path.Split(strings.TrimSuffix(source, ".md"))
	if language, is := strings.CutPrefix(name, "README"); is {
		name = "index" + language
	}
	return dir + name + ".html"
}

// translation is the name of the Chinese file of an English one.
func translation(source string) string { return strings.TrimSuffix(source, ".md") + chinese + ".md" }

// relative is the link from one HTML file to another.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.Dir(filepath.FromSlash(from)), filepath.FromSlash(to))
	if err != nil {
		return to // both paths are relative to the site, so this cannot happen
	}
	return filepath.ToSlash(rel)
}

// writeAssets writes the style sheets, the script, the icon, and the search indexes.
func (s *site) writeAssets(out string) error {
	var css bytes.Buffer
	for _, name := range []string{"site.css", "site.js", "icon.svg"} {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		if name == "site.css" {
			css.Write(text)
			continue
		}
		if err := write(out, name, text); err != nil {
			return err
		}
	}
	for name := range s.images {
		text, err := os.ReadFile(filepath.Join(s.source, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if err := write(out, name, text); err != nil {
			return err
		}
	}
	formatter := html.New(html.WithClasses(true))
	for scheme, style := range map[string]string{"light": "github", "dark": "github-dark"} {
		fmt.Fprintf(&css, "@media (prefers-color-scheme: %s) {\n", scheme)
		if err := formatter.WriteCSS(&css, styles.Get(style)); err != nil {
			return err
		}
		css.WriteString("}\n")
	}
	if err := write(out, "site.css", css.Bytes()); err != nil {
		return err
	}
	for _, language := range []string{"en", "zh-CN"} {
		index, err := s.searchIndex(language)
		if err != nil {
			return err
		}
		if err := write(out, "search."+language+".js", index); err != nil {
			return err
		}
	}
	return nil
}

func write(out, name string, text []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a web server reads the site
		return err
	}
	return os.WriteFile(file, text, 0o644) //nolint:gosec // a web server reads the site
}
