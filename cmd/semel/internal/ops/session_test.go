package ops_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// population writes one record of every kind.
func (s *testDB) population(t *testing.T) {
	t.Helper()
	s.makeInDoubt(t, callOf("doubt"))
	must := func(err error) {
		if t.Helper(); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.do(t, callOf("done"), "result-s3cret", nil)
	must(err)
	_, _, err = semel.Do(t.Context(), s.engine, callOf("raw"), func(context.Context) (semel.Raw, error) {
		return semel.Raw("\x1b[2Jresult-s3cret\xff"), nil
	})
	must(err)
	_, _, err = semel.Do(t.Context(), s.engine, callOf("streamed"), func(context.Context) (any, error) {
		return adapter.Tombstone("the response was streamed"), nil
	})
	must(err)
	failure := &semel.Failure{Code: "no_funds", Message: "not enough money\x1b[2J", Details: json.RawMessage(`{"in":"result-s3cret"}`)}
	if _, _, err := s.do(t, callOf("failed"), "", semel.Final(failure)); !errors.Is(err, failure) && err == nil {
		t.Fatal("the failure was not stored")
	}
	if _, _, err := s.do(t, callOf("released"), "", semel.NotCommitted(errDown)); err == nil {
		t.Fatal("the failure was not returned")
	}
	s.put(t, store.Record{Token: token(store.Pending, 0), Key: "queued-s3cret", Input: []byte(`"input-s3cret"`), Due: time.Hour})
	s.put(t, store.Record{Token: token(store.InProgress, 2), Key: "leaked-s3cret\xff", Due: -time.Hour, Tainted: true})
	s.enqueue(t, mailOf("waiting"), semel.EnqueueOptions{Priority: 2})
	s.refuse(t, mailOf("waiting"), errSecret)
	s.enqueue(t, smsOf("exhausted"), semel.EnqueueOptions{})
	s.refuse(t, smsOf("exhausted"), errSecret)
	s.put(t, store.Record{
		Token: token(store.InProgress, 5), Key: "crashed-s3cret", Input: []byte(`1`), Due: time.Hour, Priority: -1,
		Outcome: []byte(`p{"errors":1,"snoozes":1,"redrives":1,"ended":2,"tries":[{"attempt":2,"kind":"error","error":"s3cret"},{"attempt":3,"kind":"snooze"},{"attempt":4,"kind":"crash"}]}`),
	})
	s.put(t, store.Record{Token: token(store.Succeeded, 1), Key: "old-s3cret", Outcome: []byte(`j1`), Expire: -time.Hour})
	s.put(t, store.Record{Token: token(store.Failed, 1), Key: "worn-s3cret", Scope: semel.Shared().Bytes(), Expire: -time.Hour})
}

func token(s store.State, attempt uint32) store.Token {
	return store.Token{State: s, Attempt: attempt, Owner: 0xabc}
}

// put writes r, by default as a record of payout in someScope.
func (s *testDB) put(t *testing.T, r store.Record) store.ID {
	t.Helper()
	r.Operation, r.Scope = cmp.Or(r.Operation, payout.Name()), cmp.Or(r.Scope, someScope().Bytes())
	r.Fingerprint = []byte("fingerprint-s3cret")
	r.ID = cmp.Or(r.ID, store.NewID(r.Operation, r.Scope, r.Key))
	change := store.Change{To: r}
	answers, err := s.store.Swap(t.Context(), []store.Change{change})
	if err != nil || !answers[0].Applied(change) {
		t.Fatalf("Swap = %+v, %v", answers, err)
	}
	return r.ID
}

// session returns the command lines of the golden file.
func session(t *testing.T) [][]string {
	t.Helper()
	queued := store.NewID("payout", someScope().Bytes(), "queued-s3cret").String()
	leaked := store.NewID("payout", someScope().Bytes(), "leaked-s3cret\xff").String()
	crashed := store.NewID("payout", someScope().Bytes(), "crashed-s3cret").String()
	waiting, exhausted := mailOf("waiting").ID().String(), smsOf("exhausted").ID().String()
	show := func(id string) [][]string { return [][]string{{"show", id}, {"show", id, "--reveal", "--json"}} }
	id := func(key string) string { return callOf(key).ID().String() }
	all := [][]string{
		{"migrate"},
		{"migrate", "--json"},
		{"stats"},
		{"stats", "--json"},
		{"ls"},
		{"ls", "--json"},
		{"ls", "--reveal"},
		{"ls", "--reveal", "--json"},
		{"ls", "--state", "indoubt"},
		{"ls", "--state", "succeeded", "--operation", "payout"},
		{"ls", "--overdue"},
		{"ls", "--until", "1h"},
		{"ls", "--state", "failed", "--code", "no_funds"},
		{"ls", "--state", "failed", "--count"},
		{"ls", "--count", "--json"},
		{"redrive", "--operation", "sms", "--all", "--dry-run"},
		{"cancel", "--all", "--operation", "payout", "--state", "pending", "--dry-run", "--json"},
		{"ls", "--limit", "2"},
		{"resolve", id("doubt"), "--to", "failed", "--failure-code", "lost", "--reason", "the bank has no such charge"},
		{"resolve", id("doubt"), "--to", "pending", "--reason", "the bank has no such charge"},
		{"purge", "--dry-run"},
		{"purge", "--dry-run", "--json"},
		{"purge", "--dry-run", "--limit", "1"},
		{"purge", "--limit", "1"},
		{"purge", "--json"},
		{"show", id("failed"), "--json"},
		{"show", id("failed"), "--reveal"},
	}
	for _, id := range []string{waiting, exhausted, crashed} {
		all = append(all, show(id)...)
	}
	all = append(all, [][]string{
		{"redrive", id("failed"), "--reason", "the bank is back"},
		{"redrive", exhausted, "--reason", "the network is back", "--delay", "1h"},
		{"redrive", exhausted, "--reason", "the network is back"},
		{"reschedule", waiting, "--reason", "the mail server is back", "--delay", "0"},
		{"reschedule", waiting, "--reason", "the mail server is being moved", "--delay", "2h", "--json"},
		{"cancel", waiting, "--reason", "the customer has left"},
		{"cancel", exhausted, "--reason", "the customer has left", "--json"},
		{"cancel", crashed, "--reason", "the customer has left"},
		{"cancel", crashed, "--reason", "the customer has left", "--json"},
		{"cancel", waiting, "--reason", "the customer has left"},
		{"show", waiting},
		{"show", exhausted},
		{"partitions", "list"},
	}...)
	for _, key := range []string{"doubt", "done", "raw", "streamed", "failed", "released"} {
		all = append(all, show(id(key))...)
	}
	return append(append(all, show(queued)...), show(leaked)...)
}

// TestSession compares the output of all commands, for people and for programs,
// with the golden file.
func TestSession(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	s.population(t)
	s.sqlite(t, `UPDATE semel_salt SET salt = zeroblob(32)`) // makes the hashes constant
	var b strings.Builder
	for _, args := range session(t) {
		got := s.runOn(t, args...)
		fmt.Fprintf(&b, "$ semel %s\n%s%s", strings.Join(args, " "), got.out, got.errs)
		if got.code != 0 {
			fmt.Fprintf(&b, "exit code %d\n", got.code)
		}
		b.WriteString("\n")
	}
	golden(t, "session", strings.ReplaceAll(b.String(), s.db, "sqlite:PATH"))
}

// golden compares text with a file of testdata, ignoring times.
func golden(t *testing.T, name, text string) {
	t.Helper()
	for _, r := range []struct{ was, is string }{
		{`_seconds": ?-?[0-9.e-]+`, `_seconds": T`},
		{`\b(\d+s|\d+m\d+s|\d+h\d+m|\d+d\d+h)\b`, "T"},
		{`owner [0-9a-f]+`, "owner O"},
		{`"owner": "[0-9a-f]+"`, `"owner": "O"`},
		{`(\S)  +`, "$1  "}, // the width of columns depends on their content
	} {
		text = regexp.MustCompile(r.was).ReplaceAllString(text, r.is)
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want := check.Must(os.ReadFile(file))(t)
	if diff := gocmp.Diff(string(want), text); diff != "" {
		t.Errorf("the output differs (-%s +now):\n%s", file, diff)
	}
}

// TestCallersDataIsHidden without --reveal. Control characters for terminals
// are never printed.
func TestCallersDataIsHidden(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	s.population(t)
	revealed := 0
	for _, args := range session(t) {
		got := s.runOn(t, args...)
		shown := strings.Count(got.out+got.errs, "s3cret")
		if reveal := strings.Contains(strings.Join(args, " "), "--reveal"); !reveal && shown > 0 {
			t.Errorf("semel %v shows secrets:\n%s%s", args, got.out, got.errs)
		} else if reveal {
			revealed += shown
		}
		if all := got.out + got.errs; strings.ContainsAny(all, "\x1b\x00") || !utf8.ValidString(all) {
			t.Errorf("semel %v writes control characters: %q", args, got.out)
		}
	}
	if revealed < 20 {
		t.Errorf("--reveal shows %d secrets; want more", revealed)
	}
}
