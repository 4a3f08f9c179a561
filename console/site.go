package console

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

//go:embed static templates
var files embed.FS

// maxStreams limits the open streams of events. Other browsers show what is new when they
// load the page again.
const maxStreams = 100

// site is what the pages share.
type site struct {
	engines []*cachedEngine
	options Options
	pages   map[string]*template.Template
	streams chan struct{} // one token for each open stream of events
}

// cachedEngine is an engine and its cached counts.
type cachedEngine struct {
	Engine

	counts countCache
}

// page is the data of each page.
type page struct {
	Title   string
	Path    string // of this page, for the navigation
	Engine  string
	Engines []string
	Actor   Actor
	Refresh int    // seconds until the page loads again without JavaScript; 0: never
	Events  string // the URL of the page's events; empty: none
	Body    any
}

// EngineQuery returns the query that keeps the engine, for templates.
func (p *page) EngineQuery() string {
	if p.Engine == "" {
		return ""
	}
	return "?" + url.Values{"engine": {p.Engine}}.Encode()
}

// Link returns the URL of a page with parameters, for templates.
func (p *page) Link(path string, pairs ...string) string {
	v := make(url.Values)
	if p.Engine != "" {
		v.Set("engine", p.Engine)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + v.Encode()
}

// Record returns the URL of a record's page, for templates.
func (p *page) Record(id store.ID) string { return p.Link("record", "id", id.String()) }

// MayProbe reports whether the actor may call probes, for templates.
func (p *page) MayProbe() bool { return p.Actor.mayProbe() }

// statusError is an error with the status and the text that the actor sees.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// badRequest returns an error of the actor's input.
func badRequest(text string) error { return &statusError{http.StatusBadRequest, text} }

// newSite parses the templates.
func newSite(engines []Engine, o Options) (*site, error) {
	s := &site{options: o, pages: make(map[string]*template.Template), streams: make(chan struct{}, maxStreams)}
	for _, e := range engines {
		s.engines = append(s.engines, &cachedEngine{Engine: e, counts: countCache{runner: e.Runner}})
	}
	base, err := template.New("layout.html").Funcs(functions()).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"overview", "records", "record", "doubt", "dead", "storage", "preview", "apply", "error"} {
		clone, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if s.pages[name], err = clone.ParseFS(files, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// engineOf returns the engine that the request names, or the first one.
func (s *site) engineOf(r *http.Request) (*cachedEngine, error) {
	name := r.FormValue("engine")
	for _, e := range s.engines {
		if name == "" || e.Name == name {
			return e, nil
		}
	}
	return nil, &statusError{http.StatusNotFound, "There is no such engine."}
}

// page returns the data of a page about an engine.
func (s *site) page(r *http.Request, e *cachedEngine, path, title string, body any) *page {
	p := &page{Title: title, Path: path, Actor: actorOf(r.Context()), Engine: e.Name, Body: body}
	for _, other := range s.engines {
		p.Engines = append(p.Engines, other.Name)
	}
	return p
}

// render writes a page. It is written into memory first, so that an error shows no half
// page.
func (s *site) render(w http.ResponseWriter, status int, name string, p *page) {
	var text bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&text, name+".html", p); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the browser is gone
}

// refuse answers with an error page.
func (s *site) refuse(w http.ResponseWriter, status int, message string) {
	s.render(w, status, "error", &page{Title: http.StatusText(status), Body: message})
}

// fail answers with an error. Texts of the store are not shown: they may contain
// addresses and data.
func (s *site) fail(w http.ResponseWriter, err error) {
	var known *statusError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		s.refuse(w, known.status, known.text)
	case errors.As(err, &large):
		s.refuse(w, http.StatusRequestEntityTooLarge, "The form is too large.")
	case errors.Is(err, semel.ErrUnavailable):
		s.refuse(w, http.StatusServiceUnavailable, "The store does not answer. Nothing is known about the last change; reload the page later.")
	default:
		s.refuse(w, http.StatusInternalServerError, "The page cannot be shown.")
	}
}
