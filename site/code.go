package main

import (
	"bytes"
	"fmt"
	stdhtml "html"
	"strings"

	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// codeRenderer renders blocks of code: colors for code, pictures for diagrams.
type codeRenderer struct{ fail func(error) }

// RegisterFuncs implements renderer.NodeRenderer.
func (r *codeRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindFencedCodeBlock, r.render)
	reg.Register(ast.KindCodeBlock, r.render)
}

func (r *codeRenderer) render(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language, code := "", string(n.Lines().Value(source))
	if fenced, is := n.(*ast.FencedCodeBlock); is {
		language = string(fenced.Language(source))
	}
	var b bytes.Buffer
	var err error
	switch language {
	case "mermaid":
		err = diagram(&b, code)
	default:
		err = highlight(&b, language, code)
	}
	if err != nil {
		r.fail(err)
	}
	_, err = w.Write(b.Bytes())
	return ast.WalkSkipChildren, err
}

// title names the language of code for readers.
func title(language string) string {
	switch language {
	case "go":
		return "Go"
	case "sh", "console":
		return "Shell"
	default:
		return strings.ToUpper(language)
	}
}

// highlight writes code with the classes of its tokens.
func highlight(b *bytes.Buffer, language, code string) error {
	// The bar is for the button that copies the code.
	fmt.Fprintf(b, "<div class=\"code\" data-language=%q><div class=\"bar\"><span>%s</span></div>", language, stdhtml.EscapeString(title(language)))
	lexer := lexers.Get(language)
	if lexer == nil || language == "console" {
		// A session at the console is shown as it is. Chroma would color its output, too.
		fmt.Fprintf(b, "<pre tabindex=\"0\" class=\"chroma\"><code>%s</code></pre></div>\n", stdhtml.EscapeString(code))
		return nil
	}
	tokens, err := lexer.Tokenise(nil, code)
	if err != nil {
		return err
	}
	if err := html.New(html.WithClasses(true)).Format(b, styles.Get("github"), tokens); err != nil {
		return err
	}
	b.WriteString("</div>\n")
	return nil
}
