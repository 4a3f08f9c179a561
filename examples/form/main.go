// Command form is a small shop with a plain HTML form and without a script. However the
// form is sent, by a double click, a reload, the back button or a second time from the
// browser's history, each form that was opened places one order.
//
//	go run ./examples/form
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/semelgo/semel/examples/form/shop"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8083", "`host:port` to serve on")
	file := flag.String("db", "form.db", "the `file` of the SQLite database")
	flag.Parse()
	os.Exit(run(*addr, *file))
}

func run(addr, file string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, addr, file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve serves the shop until ctx ends, and then finishes the running requests.
func serve(ctx context.Context, addr, file string) error {
	s, err := shop.Open(ctx, file)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	fmt.Fprintf(os.Stdout, "serving http://%s\n", addr)
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(last), s.Close(last))
}
