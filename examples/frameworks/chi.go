package frameworks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Chi serves the shop by chi. Its middlewares are those of net/http, so no adapter is
// needed: With puts Once around the handler of one route, inside of routing and
// authentication.
func (s *Shop) Chi() http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.Recoverer, authenticate)
	r.With(s.Once("create_order")).Post("/shops/{shop}/orders", func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, "the order is not JSON", http.StatusBadRequest)
			return
		}
		o.Shop = chi.URLParam(r, "shop")
		switch o, err := s.Create(r.Context(), o); {
		case errors.Is(err, ErrSoldOut):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, "try again", http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", fmt.Sprintf("/orders/%d", o.ID))
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(o)
		}
	})
	return r
}

// authenticate stands for the authentication of your program.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("X-User"); user != "" {
			r = WithUser(r, user)
		}
		next.ServeHTTP(w, r)
	})
}
