package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/semelgo/semel/examples/chat/page"
	"github.com/semelgo/semel/semelhttp"
)

// routes puts the endpoints together. Who is asking is found out first, then
// what they ask; only then is a key claimed.
func (s *app) routes() (http.Handler, error) {
	createGroup, err := s.createGroup()
	if err != nil {
		return nil, err
	}
	sendMessage, err := s.sendMessage()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	add(mux, "/v1/users", methods{http.MethodPost: s.answering(http.StatusCreated, s.addUser)})
	add(mux, "/v1/users/{id}", methods{http.MethodGet: s.signedIn(s.getUser)})
	add(mux, "/v1/groups", methods{http.MethodPost: s.authenticated(createGroup), http.MethodGet: s.signedIn(s.listGroups)})
	add(mux, "/v1/groups/{id}", methods{http.MethodGet: s.signedIn(s.getGroup)})
	add(mux, "/v1/groups/{id}/members", methods{http.MethodPost: s.signedIn(s.addMembers)})
	add(mux, "/v1/groups/{id}/messages",
		methods{http.MethodPost: s.authenticated(sendMessage), http.MethodGet: s.signedIn(s.listMessages)})
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		problem(codeNotFound, "", "There is no such address.").Write(w)
	})
	mux.HandleFunc("GET /healthz", s.healthy)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /problems/{code...}", problemPages)
	page.Register(mux)
	return limited(mux), nil
}

// signedIn answers 200 to users who are signed in.
func (s *app) signedIn(fn func(r *http.Request) (any, error)) http.Handler {
	return s.authenticated(s.answering(http.StatusOK, fn))
}

// keyed is how endpoints with a key are protected.
func (s *app) keyed() semelhttp.Options {
	return semelhttp.Options{ScopeFunc: scopeFunc, MaxBody: maxBody, ErrorFunc: s.logError}
}

type methods map[string]http.Handler

// add registers the methods of a path, and a problem for every other.
func add(mux *http.ServeMux, path string, m methods) {
	var allowed []string
	for method, handler := range m {
		mux.Handle(method+" "+path, handler)
		allowed = append(allowed, method)
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		problem(codeNotAllowed, "", "Here is only %s.", allow).Write(w)
	})
}
