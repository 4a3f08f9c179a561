// Command console measures the pages of the console over 2,000,000 records in a PostgreSQL
// server of its own: `go run ./test/console`. README.md has a result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

func main() {
	records := flag.Int("records", 2_000_000, "the number of records")
	rounds := flag.Int("rounds", 20, "how often each page is read")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *records, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, records, rounds int) error {
	server, err := realtest.StartDurable(ctx, realtest.DurableOptions{Settings: []string{"shared_buffers=512MB", "max_wal_size=4GB"}})
	if err != nil {
		return err
	}
	defer server.Close() //nolint:contextcheck // it ends the server after the context, too
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pgmigrate.Up(ctx, pool, pgmigrate.Options{}); err != nil {
		return err
	}
	s, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return err
	}
	charge := semel.Define("charge", semel.OperationOptions[string]{})
	refund := semel.Define("refund", semel.OperationOptions[string]{})
	mail := semel.Define("mail", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 1}})
	engine, err := semel.New(s, semel.Options{Operations: []semel.Declared{charge, refund, mail}})
	if err != nil {
		return err
	}
	do := func(op *semel.Operation[string], key string, fails error) {
		_, _, _ = semel.Do(ctx, engine, op.Call(semel.ScopeOf("shop", "7"), key, "4111-1111-1111-1111"),
			func(context.Context) (string, error) { return "paid with 4111", fails })
	}
	down := errors.New("the receiver does not answer")
	do(charge, "paid", nil)
	do(charge, "doubt", down)
	do(refund, "rare", nil)
	do(mail, "letter", down)
	do(charge, "failed", semel.Final(down))
	if _, err := semel.Enqueue(ctx, engine, mail.Call(semel.ScopeOf("shop", "7"), "waits", "x"), semel.EnqueueOptions{}); err != nil {
		return err
	}
	begun := clock.Now()
	for key, n := range map[string]int{"paid": records - 2*(records/50) - 4206, "waits": records / 50, "failed": records / 50, "letter": 3000, "doubt": 700, "rare": 500} {
		if err := multiply(ctx, pool, key, n); err != nil {
			return err
		}
	}
	if _, err := pool.Exec(ctx, `VACUUM ANALYZE semel_records`); err != nil {
		return err
	}
	filled := clock.Since(begun)
	counts, err := s.Counts(ctx)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, n := range counts {
		total += n.Records
	}
	fmt.Fprintf(out, "%d records, filled in %v, counted in %v\n", total, filled.Round(time.Second), (clock.Since(begun) - filled).Round(time.Millisecond))
	pages, err := console.Handler([]console.Engine{{Runner: engine}}, console.Options{
		Authenticate: func(*http.Request) (console.Actor, error) {
			return console.Actor{Name: "ann", Reveal: true, Write: true}, nil
		},
		Audit: func(context.Context, console.Event) error { return nil },
	})
	if err != nil {
		return err
	}
	web := httptest.NewServer(pages)
	defer web.Close()
	return measure(ctx, out, web.URL+"/", rounds)
}

// multiply copies the record with a key n times, with keys and IDs of their own.
func multiply(ctx context.Context, pool *pgxpool.Pool, key string, n int) error {
	const part = `int4send(length(%[1]s)) || %[1]s`
	id := fmt.Sprintf(`encode(set_bit(substring(sha256(`+part+` || `+strings.ReplaceAll(part, "[1]", "[2]")+` || `+
		strings.ReplaceAll(part, "[1]", "[3]")+`) FROM 1 FOR 16), 7, 0), 'hex')::uuid`, "operation", "scope", "k")
	_, err := pool.Exec(ctx, `INSERT INTO semel_records (id, owner, due, expires, created, changed, attempt, state, priority, tainted,
operation, scope, key, fingerprint, input, outcome)
SELECT `+id+`, owner, due, expires, created - ago, changed - ago, attempt, state, priority, tainted, operation, scope, k, fingerprint, input, outcome
FROM (SELECT r.*, convert_to($1::text || '-' || n, 'UTF8') AS k, random() * interval '20 hours' AS ago
FROM semel_records r CROSS JOIN generate_series(1, $2::int) n WHERE key = convert_to($1::text, 'UTF8')) AS copies`, key, n)
	return err
}

// measure reads each page and prints the median and the longest time.
func measure(ctx context.Context, out io.Writer, base string, rounds int) error {
	for _, path := range []string{
		"", "records", "records?state=pending", "records?state=inprogress", "records?state=indoubt", "records?state=failed",
		"records?state=succeeded", "records?state=pending&overdue=1", "records?operation=refund", "records?operation=none",
		"records?dead=1", "records?state=failed&operation=mail", "records?key=paid-77", "records?key=paid-77&scope=shop+%2F+7",
		"records?after=7fffff00000000000000000000000000", "doubt", "dead", "storage", "preview?action=resolve&state=indoubt",
		"preview?action=redrive&dead=1", "preview?action=cancel&state=pending", "preview?action=purge",
	} {
		var times []time.Duration
		for range rounds {
			begun := clock.Now()
			if _, err := read(ctx, http.MethodGet, base+path, nil); err != nil {
				return err
			}
			times = append(times, clock.Since(begun))
		}
		first := times[0]
		slices.Sort(times)
		fmt.Fprintf(out, "| `/%s` | %.0f | %.0f | %.0f |\n", path, ms(first), ms(times[len(times)/2]), ms(times[len(times)-1]))
	}
	preview, err := read(ctx, http.MethodGet, base+"preview?action=resolve&state=indoubt", nil)
	if err != nil {
		return err
	}
	form := url.Values{"action": {"resolve"}, "to": {"pending"}, "reason": {"measured"}}
	for _, part := range strings.Split(preview, `name="record" value="`)[1:] {
		token, _, _ := strings.Cut(part, `"`)
		if len(form["record"]) < 500 {
			form.Add("record", token)
		}
	}
	begun := clock.Now()
	result, err := read(ctx, http.MethodPost, base+"apply", form)
	fmt.Fprintf(out, "resolved 500 records in %v: %v\n", clock.Since(begun).Round(time.Millisecond), strings.Contains(result, "500 done"))
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// read sends a request and returns the page.
func read(ctx context.Context, method, address string, form url.Values) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, res.Status, text)
	}
	return string(text), err
}
