package semelhttp

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/semelgo/semel/store"
)

// form reads the requests of a form, and renders its problems.
type form struct {
	field string
	page  *template.Template
}

//go:embed form.html
var formHTML string

func defaultFormPage() *template.Template { return template.Must(template.New("").Parse(formHTML)) }

// response returns a problem as a page.
func (f *form) response(p Problem) Response {
	var page bytes.Buffer
	if err := f.page.Execute(&page, &p); err != nil {
		page.Reset()
		_ = defaultFormPage().Execute(&page, &p) // cannot fail
	}
	r := p.response("text/html; charset=utf-8", nil)
	r.Header.Set("X-Content-Type-Options", "nosniff")
	r.Body = page.Bytes()
	return r
}

// token is a KeyFunc: it returns the one token in the request.
func (f *form) token(r *http.Request, body []byte) (string, error) {
	tokens := r.Header[HeaderToken]
	err := eachField(r, body, func(name, _ string, value []byte) {
		if name == f.field {
			tokens = append(slices.Clip(tokens), string(value))
		}
	})
	switch {
	case err != nil:
		return "", problem(codeBodyInvalid, "The form cannot be read. Nothing was run.")
	case len(tokens) != 1 || tokens[0] == "":
		return "", problem(codeTokenMissing, "")
	case len(tokens[0]) > store.MaxKey:
		return "", problem(codeTokenUnknown, "")
	}
	return tokens[0], nil
}

// sentContents returns a digest of the method, the target and the contents of a submit.
// The boundary of a multipart body is not a part of it, because browsers draw a new one
// for each submit.
func sentContents(r *http.Request, body []byte) (string, error) {
	path, query := target(r)
	text := appendBytes(appendBytes(appendBytes(nil, r.Method), path), query)
	none := true
	err := eachField(r, body, func(name, file string, value []byte) {
		none = false
		text = appendBytes(appendBytes(appendBytes(text, name), file), value)
	})
	if err != nil {
		return "", problem(codeBodyInvalid, "The form cannot be read. Nothing was run.")
	}
	if none {
		text = appendBytes(text, body)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// eachField calls do for each field of a form, in the order of the body, with the name of
// its file if it is one. A body of another media type has no fields.
func eachField(r *http.Request, body []byte, do func(name, file string, value []byte)) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return nil //nolint:nilerr // a body without a media type is no form
	case kind == "application/x-www-form-urlencoded":
		return eachPair(string(body), do)
	case kind != "multipart/form-data":
		return nil
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		do(part.FormName(), part.FileName(), value)
	}
}

// eachPair calls do for each field of a body in the form of a URL's query.
func eachPair(body string, do func(name, file string, value []byte)) error {
	for pair := range strings.SplitSeq(body, "&") {
		field, err := url.ParseQuery(pair)
		if err != nil {
			return err
		}
		for name, values := range field {
			do(name, "", []byte(values[0]))
		}
	}
	return nil
}
