package console

import (
	"context"
	"errors"
	"net/http"
)

// policy is the Content-Security-Policy: files of this handler only, nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm limits the body of a request: the records of a bulk action and a result.
const maxForm = 1 << 20

// actorKey is the key of the actor in a request's context.
type actorKey struct{}

// actorOf returns the actor of a request that guard has let through.
func actorOf(ctx context.Context) Actor {
	actor, _ := ctx.Value(actorKey{}).(Actor)
	return actor
}

// errNoOrigin refuses a change by a client that does not say where its form is from. All
// browsers say it.
var errNoOrigin = errors.New("the request has neither Sec-Fetch-Site nor Origin")

// guard adds the security headers, authenticates, limits the body, and refuses forms of
// other sites.
func guard(authenticate func(r *http.Request) (Actor, error), refuse func(w http.ResponseWriter, status int, message string), next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		actor, err := authenticate(r)
		if err != nil || actor.Name == "" {
			refuse(w, http.StatusUnauthorized, "Sign in to use the console.")
			return
		}
		if err := checkOrigin(origin, r); err != nil {
			refuse(w, http.StatusForbidden, "The form is not from this console: open the page again.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
	})
}

// checkOrigin refuses a change that does not come from a page of the same origin.
func checkOrigin(origin *http.CrossOriginProtection, r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return errNoOrigin
	}
	return origin.Check(r)
}
