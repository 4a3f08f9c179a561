// Package console is a web console for operators: it shows the records of one or more
// engines, and resolves, redrives, cancels and purges them. [Handler] returns an
// http.Handler to mount in any mux:
//
//	pages, err := console.Handler([]console.Engine{{Name: "shop", Runner: engine}}, console.Options{
//		Authenticate: actorOf, // of the application
//		Audit:        audit,   // into the application's log
//	})
//	mux.Handle("/console/", http.StripPrefix("/console", pages))
//
// The pages need no JavaScript. They load nothing from other servers, and a strict
// Content-Security-Policy allows no inline script and no inline style. No page answers
// without an [Actor]; an actor may only read unless its rights say more.
package console
