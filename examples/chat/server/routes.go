package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/semelgo/semel/examples/chat/page"
)

// routes returns the handler of all endpoints. Each endpoint first authenticates,
// then validates the request, and only then claims the key.
func (s *app) routes() (http.Handler, error) {
	endpoints, err := s.endpoints()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, m := range endpoints {
		add(mux, path, m)
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) { noAddress().Write(w) })
	page.Register(mux)
	return limited(mux), nil
}

// methods maps the methods of a path to their handlers.
type methods map[string]http.Handler

// endpoints maps the paths of openapi.yaml to their handlers.
func (s *app) endpoints() (map[string]methods, error) {
	users, groups, messages := newUserService(s), groupService{s}, messageService{s}
	signUp, err := users.signUp()
	if err != nil {
		return nil, err
	}
	createGroup, err := groups.create()
	if err != nil {
		return nil, err
	}
	sendMessage, err := messages.send()
	if err != nil {
		return nil, err
	}
	boostGroup, err := s.boostGroup()
	if err != nil {
		return nil, err
	}
	declaration, err := s.declaration()
	if err != nil {
		return nil, err
	}
	const (
		get, post, put = http.MethodGet, http.MethodPost, http.MethodPut
		patch, del     = http.MethodPatch, http.MethodDelete
		created        = http.StatusCreated
	)
	return map[string]methods{
		"/v1/users":                      {post: signUp, get: s.signedIn(users.find)},
		"/v1/users/{id}":                 {get: s.signedIn(users.get)},
		"/v1/sessions":                   {post: s.answering(created, users.logIn), get: s.signedIn(users.listSessions)},
		"/v1/sessions/{id}":              {del: s.emptyOK(users.revoke)},
		"/v1/tickets":                    {post: s.authenticated(s.answering(created, users.newTicket))},
		"/v1/groups":                     {post: s.authenticated(createGroup), get: s.signedIn(groups.list)},
		"/v1/groups/{id}":                {get: s.signedIn(groups.get), patch: s.signedIn(groups.rename)},
		"/v1/groups/{id}/members":        {post: s.signedIn(groups.addMembers)},
		"/v1/groups/{id}/members/{user}": {del: s.emptyOK(groups.removeMember)},
		"/v1/groups/{id}/read":           {put: s.signedIn(groups.moveRead)},
		"/v1/groups/{id}/messages":       {post: s.authenticated(sendMessage), get: s.signedIn(messages.list)},
		"/v1/groups/{id}/messages/{seq}": {patch: s.signedIn(messages.edit), del: s.signedIn(messages.remove)},
		"/v1/groups/{id}/boosts":         {post: s.authenticated(boostGroup), get: s.signedIn(s.listBoosts)},
		"/v1/ws":                         {get: http.HandlerFunc(s.live.WebSocket)},
		"/v1/events":                     {get: http.HandlerFunc(s.live.Events)},
		"/v1/queue":                      {get: s.signedIn(s.showQueue)},
		"/healthz":                       {get: http.HandlerFunc(s.healthy)},
		"/readyz":                        {get: http.HandlerFunc(s.ready)},
		"/openapi.yaml":                  {get: http.HandlerFunc(s.describe)},
		"/.well-known/idempotency":       {get: declaration},
		"/problems/{code...}":            {get: http.HandlerFunc(problemPages)},
	}, nil
}

// signedIn is answering with status 200 for authenticated users.
func (s *app) signedIn(fn func(r *http.Request) (any, error)) http.Handler {
	return s.authenticated(s.answering(http.StatusOK, fn))
}

// add registers the methods of a path. Other methods get a problem.
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
