package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/serve"
	"github.com/semelgo/semel/store/postgres"
)

// consoleFlags are the flags of console.
type consoleFlags struct {
	addr, actor string
	write       bool
}

func newConsoleCommand() *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console",
		Short: "Serve a web console on this machine",
		Long: `console serves web pages that show the records, and prints their address. The address
contains a secret: the browser exchanges it for a cookie. Only this machine can reach
the pages; to use them from another one, forward the port with ssh -L.

Without --write the pages change nothing. Inputs, results and errors are hidden until
they are revealed. What is revealed and changed is written to standard error, as JSON;
changes are also kept as notes, which semel show prints.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return withDB(c, func(ctx context.Context, db *database) error { return f.serve(ctx, c, db) })
		},
	}
	addDB(c)
	c.Flags().StringVar(&f.addr, "addr", "127.0.0.1:0", "the address of this machine to listen on; port 0 means a free one")
	c.Flags().BoolVar(&f.write, "write", false, "allow resolve, redrive, cancel and purge")
	c.Flags().StringVar(&f.actor, "actor", "", "the person who uses the console (default $USER)")
	return c
}

// check checks that the address is of this machine only.
func (f *consoleFlags) check() error {
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return exit.Usagef("--addr: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return exit.Usagef("--addr %s is not an address of this machine only, such as 127.0.0.1:8080: mount package console in a program that authenticates", f.addr)
	}
	if f.actor = cmp.Or(f.actor, os.Getenv("USER")); f.actor == "" {
		return exit.Usagef(noActor)
	}
	return nil
}

// serve serves the console until ctx ends.
func (f *consoleFlags) serve(ctx context.Context, c *cobra.Command, db *database) error {
	runner, err := db.engine(semel.Options{})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.addr)
	if err != nil {
		return exit.Usagef("--addr: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	in := &consoleLogin{
		token: rand.Text(), cookie: fmt.Sprintf("semel_console_%d", port), session: rand.Text(),
		actor: console.Actor{Name: f.actor, Reveal: true, Write: f.write},
	}
	log := slog.New(slog.NewJSONHandler(c.ErrOrStderr(), nil))
	pages, err := console.Handler([]console.Engine{{Runner: runner, Partitions: listPartitions(db)}}, console.Options{
		Authenticate: in.authenticate,
		Audit: func(ctx context.Context, e console.Event) error {
			ids := make([]string, len(e.Records))
			for i, id := range e.Records {
				ids[i] = id.String()
			}
			log.LogAttrs(ctx, slog.LevelInfo, "audit", slog.String("action", string(e.Action)), slog.String("actor", e.Actor),
				slog.String("reason", e.Reason), slog.Any("records", ids))
			return nil
		},
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /login", in)
	mux.Handle("/", pages)
	fmt.Fprintf(c.OutOrStdout(), "The console of %s: http://%s/login?token=%s\n", db.name, listener.Addr(), in.token)
	const grace = 5 * time.Second
	return serve.HTTP(ctx, listener, &http.Server{
		Handler: mux, ReadHeaderTimeout: grace, ReadTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams of events end with it
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}, grace)
}

// listPartitions returns the function that lists the partitions of db, or nil if a
// database of its kind has none.
func listPartitions(db *database) func(ctx context.Context) ([]console.Partition, error) {
	if db.partitions == nil {
		return nil
	}
	return func(ctx context.Context) ([]console.Partition, error) {
		p, err := db.partitions(postgres.PartitionOptions{})
		if err != nil {
			return nil, err
		}
		all, err := p.List(ctx)
		if errors.Is(err, postgres.ErrNotDivided) {
			return nil, nil
		}
		shown := make([]console.Partition, len(all))
		for i := range all {
			v := partitionOf(&all[i])
			shown[i] = console.Partition{Name: v.Partition, To: v.To, Dropping: v.Sealed || v.Detached}
			if v.From != nil {
				shown[i].From = *v.From
			}
		}
		return shown, err
	}
}

// consoleLogin exchanges the secret in the printed address for a cookie.
type consoleLogin struct {
	token, cookie, session string
	actor                  console.Actor
}

// authenticate accepts the cookie.
func (l *consoleLogin) authenticate(r *http.Request) (console.Actor, error) {
	cookie, err := r.Cookie(l.cookie)
	if err != nil {
		return console.Actor{}, err
	}
	if subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(l.session)) != 1 {
		return console.Actor{}, errors.New("another session")
	}
	return l.actor, nil
}

// ServeHTTP sets the cookie. It answers with a page that opens the console, and not with a
// redirect: after a link of another site a browser would not send the cookie with that.
func (l *consoleLogin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(l.token)) != 1 {
		http.Error(w, "The address is not the one that semel console printed.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: l.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	h.Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Semel</title>`+
		`<meta http-equiv="refresh" content="0; url=./"></head><body><a href="./">Open the console</a></body></html>`)
}
