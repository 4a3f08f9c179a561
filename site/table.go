package main

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

const (
	// phoneWidth is how many characters a table may have in a row so that a phone can show it
	// as a table. Wider tables become stacked rows there.
	phoneWidth = 38
	// shortCell is the longest text that a stacked row shows beside the name of its column.
	shortCell = 18
	// longCell is the shortest text whose column must not become narrow.
	longCell = 60
	// longCode is the shortest code in which a line may break.
	longCode = 16
)

// tableRenderer renders tables that a page can scroll, and code in the text with places where
// a line may break.
type tableRenderer struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (tableRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(extensionast.KindTable, renderTable)
	reg.Register(ast.KindCodeSpan, renderCode)
}

func renderTable(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	text := "<div class=\"table\" tabindex=\"0\"><table>\n"
	if _, stacked := n.AttributeString("class"); stacked {
		text = "<div class=\"table stack\" tabindex=\"0\"><table>\n"
	}
	if !entering {
		text = "</table></div>\n"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

// prepareTable gives each cell the name of its column, which stacked rows show, and decides how
// a phone shows the table.
func prepareTable(table *extensionast.Table, source []byte) {
	var names []string
	var widths []int
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		column := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			text := plain(cell, source)
			width := textCells(text)
			if row.Kind() == extensionast.KindTableHeader {
				names, widths = append(names, text), append(widths, width)
				continue
			}
			widths[column] = max(widths[column], width)
			if text != "" {
				cell.SetAttributeString("data-label", []byte(names[column]))
			}
			if width <= shortCell {
				cell.SetAttributeString("class", []byte("short"))
			} else if width >= longCell {
				cell.SetAttributeString("class", []byte("long"))
			}
			column++
		}
	}
	sum := 0
	for _, width := range widths {
		sum += width
	}
	if sum > phoneWidth {
		table.SetAttributeString("class", "stack")
	}
}

// textCells is the width of a text in characters; a Chinese one is as wide as two.
func textCells(text string) (width int) {
	for _, r := range text {
		width++
		if r >= 0x2E80 {
			width++
		}
	}
	return width
}

// renderCode marks the places where a line may break in long code, such as a path.
func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	code := plain(n, source)
	var b bytes.Buffer
	b.WriteString("<code>")
	cell := n.Parent().Kind() == extensionast.KindTableCell || n.Parent().Parent().Kind() == extensionast.KindTableCell
	var last rune
	long := utf8.RuneCountInString(code) >= longCode
	for i, r := range code {
		// A line may break after a mark, and in a table before a capital letter of a name.
		if long && i > 0 && (strings.ContainsRune("/._(,=&?:|", last) || cell && unicode.IsLower(last) && unicode.IsUpper(r)) {
			b.WriteString("<wbr>")
		}
		b.WriteString(html.EscapeString(string(r)))
		last = r
	}
	b.WriteString("</code>")
	_, err := w.Write(b.Bytes())
	return ast.WalkSkipChildren, err
}
