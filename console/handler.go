package console

import (
	"io/fs"
	"net/http"
)

// Handler returns the pages of the console. Mount it below a path that ends in a slash,
// with http.StripPrefix, or at the root of a server. Wrong arguments are a
// [semel.FieldError].
func Handler(engines []Engine, o Options) (http.Handler, error) {
	if err := checkOptions(engines, o); err != nil {
		return nil, err
	}
	s, err := newSite(engines, o)
	if err != nil {
		return nil, err
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*site, http.ResponseWriter, *http.Request) error{
		"GET /{$}":     show("overview"),
		"GET /records": showRecords,
		"GET /record":  show("record"),
		"POST /record": reveal,
		"POST /probe":  probe,
		"GET /doubt":   show("doubt"),
		"GET /dead":    showDead,
		"POST /dead":   showDead,
		"GET /storage": showStorage,
		"GET /preview": showPreview,
		"POST /apply":  apply,
		"GET /events":  stream,
		"GET /{name...}": func(s *site, w http.ResponseWriter, _ *http.Request) error {
			return &statusError{http.StatusNotFound, "There is no such page."}
		},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := answer(s, w, r); err != nil {
				s.fail(w, err)
			}
		})
	}
	for _, name := range []string{"console.css", "console.js"} {
		mux.Handle("GET /"+name, http.FileServerFS(static))
	}
	return guard(o.Authenticate, s.refuse, mux), nil
}
