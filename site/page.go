package main

import (
	"bytes"
	"html/template"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// repository is where links to files that are no page lead.
const repository = "https://github.com/semelgo/semel/"

// page is one Markdown file, and what the program has made of it.
type page struct {
	source, target string
	text           []byte
	document       ast.Node
	title          string
	// head is the page's first heading, body is the rest.
	head, body template.HTML
	ids        map[string]bool
	links      []link
	sections   []section
	aliases    []string // words that readers search for
}

// link is a link to a heading of a page, or to a page.
type link struct{ source, fragment string }

// section is a heading with its text, for the search and for the list of headings.
type section struct {
	Level      int
	ID, Title  string
	text, code strings.Builder
}

func (p *page) chinese() bool { return strings.HasSuffix(p.source, chinese+".md") }

// languageLine is the line by which Markdown pages link to their translation. The site has a
// language switch instead.
var languageLine = regexp.MustCompile(`(?m)^(English \| \[中文\]\([^)]*\)|\[English\]\([^)]*\) \| 中文)\n`)

// render converts the Markdown of a page.
func (s *site) render(p *page) {
	p.text = languageLine.ReplaceAll(p.text, nil)
	code := &codeRenderer{fail: func(err error) { s.fail(p, "%w", err) }}
	// The content security policy forbids the alignment by styles.
	tables := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	markdown := goldmark.New(
		goldmark.WithExtensions(tables, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		// The Markdown has comments and line breaks in HTML.
		goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(code, 100), util.Prioritized(tableRenderer{}, 100))),
	)
	p.document = markdown.Parser().Parse(text.NewReader(p.text), parser.WithContext(parser.NewContext(parser.WithIDs(anchorSet(p.ids)))))
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			s.visit(p, n)
		}
		return ast.WalkContinue, nil
	})
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.text, p.document); err != nil {
		s.fail(p, "%w", err)
	}
	head, body, _ := strings.Cut(b.String(), "</h1>\n")
	p.head, p.body = template.HTML(head+"</h1>\n"), template.HTML(body) //nolint:gosec // the repository's own pages
	if p.title == "" {
		s.fail(p, "the page has no title")
	}
}

// visit collects titles and text, and resolves links.
func (s *site) visit(p *page, n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		id, _ := n.AttributeString("id")
		name, _ := id.([]byte)
		title := plain(n, p.text)
		if n.Level == 1 {
			p.title = title
		}
		p.sections = append(p.sections, section{Level: n.Level, ID: string(name), Title: title})
	case *ast.Link:
		n.Destination = []byte(s.resolve(p, string(n.Destination)))
	case *ast.Image:
		name := path.Join(path.Dir(p.source), string(n.Destination))
		s.images[name] = true
		n.Destination = []byte(relative(p.target, name))
	case *extensionast.Table:
		prepareTable(n, p.text)
	case *ast.Text:
		if n.Parent().Kind() != ast.KindHeading {
			p.add(string(n.Value(p.text)), false)
		}
	case *ast.FencedCodeBlock:
		if string(n.Language(p.text)) != "mermaid" {
			p.add(string(n.Lines().Value(p.text)), true)
		}
	}
}

// add adds text or code to the section of the last heading.
func (p *page) add(text string, code bool) {
	if len(p.sections) == 0 {
		return
	}
	b := &p.sections[len(p.sections)-1].text
	if code {
		b = &p.sections[len(p.sections)-1].code
	}
	b.WriteString(text)
	b.WriteByte(' ')
}

// plain is the text of a node without marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, is := n.(*ast.Text); is && entering {
			b.Write(t.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// resolve returns the target on the site of a link in Markdown.
func (s *site) resolve(p *page, destination string) string {
	u, err := url.Parse(destination)
	if err != nil {
		s.fail(p, "link: %w", err)
		return destination
	}
	if u.IsAbs() {
		return destination
	}
	name := p.source
	if u.Path != "" {
		name = path.Join(path.Dir(p.source), u.Path)
	}
	if _, is := s.pages[name]; !is {
		if _, is := s.pages[name+"/README.md"]; is {
			name += "/README.md"
		}
	}
	if to, is := s.pages[name]; is {
		p.links = append(p.links, link{name, u.Fragment})
		return (&url.URL{Path: relative(p.target, to.target), Fragment: u.Fragment}).String()
	}
	info, err := os.Stat(filepath.Join(s.source, filepath.FromSlash(name)))
	switch {
	case err != nil:
		s.fail(p, "link to %s, which does not exist", name)
		return destination
	case info.IsDir():
		return repository + "tree/main/" + name
	default:
		return repository + "blob/main/" + name
	}
}

// anchorSet makes the IDs of headings in the way of GitHub, where the Markdown is read, too.
type anchorSet map[string]bool

// Generate implements parser.IDs.
func (ids anchorSet) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, string(bytes.TrimSpace(value)))
	unique := id
	for i := 1; ids[unique]; i++ {
		unique = id + "-" + strconv.Itoa(i)
	}
	ids[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (ids anchorSet) Put(value []byte) { ids[string(value)] = true }
