package ops_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
)

// hashes are the hashes of a record's scope and key.
type hashes struct {
	Scope string `json:"scope_hash"`
	Key   string `json:"key_hash"`
}

// listed runs ls and returns the hashes of the record of c.
func (s *testDB) listed(t *testing.T, c semel.Call) hashes {
	t.Helper()
	for line := range strings.Lines(s.must(t, "ls", "--json", "--limit", "0")) {
		var r struct {
			hashes

			ID string
		}
		check.Require(t, json.Unmarshal([]byte(line), &r))
		if r.ID == c.ID().String() {
			return r.hashes
		}
	}
	t.Fatalf("ls does not list %s", c.ID())
	return hashes{}
}

// sqlite runs text on the SQLite file.
func (s *testDB) sqlite(t *testing.T, text string) {
	t.Helper()
	db := check.Must(sql.Open("sqlite", strings.TrimPrefix(s.db, "sqlite:")))(t)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestHashesWithinOneDatabase: a key has the same hash in every command and for
// every operation, and another hash in another database.
func TestHashesWithinOneDatabase(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		first, second, differs := charge.Call(someScope(), "1", ""), payout.Call(someScope(), "1", ""), charge.Call(someScope(), "2", "")
		other := newSQLite(t)
		for _, c := range []semel.Call{first, second, differs} {
			s.makeInDoubt(t, c)
			other.makeInDoubt(t, c)
		}
		want := s.listed(t, first)
		if got := s.listed(t, first); got != want {
			t.Errorf("the second list shows %v, want %v as the first", got, want)
		}
		check.Equal(t, s.listed(t, second), want, "another operation shows")
		if got := s.listed(t, differs); got.Scope != want.Scope || got.Key == want.Key {
			t.Errorf("another key shows %v, want the scope of %v and another key", got, want)
		}
		if got := other.listed(t, first); got.Scope == want.Scope || got.Key == want.Key {
			t.Errorf("another database shows %v, want other hashes than %v", got, want)
		}
		if shown := s.must(t, "show", first.ID().String()); !strings.Contains(shown, want.Scope) || !strings.Contains(shown, want.Key) {
			t.Errorf("show writes\n%swant the hashes %v", shown, want)
		}
		resolved := s.must(t, "resolve", first.ID().String(), "--to", "failed", "--reason", "r", "--json")
		if !strings.Contains(resolved, want.Scope) || !strings.Contains(resolved, want.Key) {
			t.Errorf("resolve writes\n%swant the hashes %v", resolved, want)
		}
		if sum := sha256.Sum256([]byte("1")); want.Key == hex.EncodeToString(sum[:6]) {
			t.Errorf("the hash of the key is %s, which has no salt", want.Key)
		}
	})
}

// TestHashesOfTheView: the program and the view print the same hashes, and the
// view has the failures' codes.
func TestHashesOfTheView(t *testing.T) {
	t.Parallel()
	s := newPostgres(t)
	failed := callOf("failed")
	if _, _, err := s.do(t, failed, "", semel.Final(&semel.Failure{Code: "no_funds", Message: "s3cret"})); err == nil {
		t.Fatal("the failure was not stored")
	}
	s.enqueue(t, smsOf("exhausted"), semel.EnqueueOptions{})
	s.refuse(t, smsOf("exhausted"), errSecret)
	conn := check.Must(pgx.Connect(t.Context(), s.db))(t)
	defer conn.Close(t.Context())
	type row struct {
		hashes

		State, Code string
		Dead        bool
	}
	for c, want := range map[string]row{
		failed.ID().String():             {s.listed(t, failed), "Failed", "no_funds", false},
		smsOf("exhausted").ID().String(): {s.listed(t, smsOf("exhausted")), "Failed", "exhausted", true},
	} {
		var got row
		const read = `SELECT scope_hash, key_hash, state, failure_code, dead_letter FROM semel_record_view WHERE id = $1`
		if err := conn.QueryRow(t.Context(), read, c).Scan(&got.Scope, &got.Key, &got.State, &got.Code, &got.Dead); err != nil || got != want {
			t.Errorf("the view shows %+v, %v, want %+v", got, err, want)
		}
	}
}

// TestReadOnlyRole: a role that may only read can list everything, and a
// missing right is named.
func TestReadOnlyRole(t *testing.T) {
	t.Parallel()
	s := newPostgres(t)
	id := s.makeInDoubt(t, callOf("doubt"))
	address := check.Must(url.Parse(s.db))(t)
	role := strings.TrimPrefix(address.Path, "/") + "_reader"
	s.exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'reader'`)
	s.exec(t, `GRANT SELECT ON semel_records, semel_notes TO `+role)
	address.User = url.UserPassword(role, "reader")
	reader := &testDB{db: address.String()}
	for _, args := range [][]string{{"ls", "--json"}, {"show", id}} {
		reader.runOn(t, args...).want(t, exit.Unavailable, "semel_salt")
	}
	reader.must(t, "stats")
	s.exec(t, `GRANT SELECT ON semel_salt TO `+role)
	if got, want := reader.listed(t, callOf("doubt")), s.listed(t, callOf("doubt")); got != want {
		t.Errorf("it shows %v, want %v as the owner sees", got, want)
	}
	reader.must(t, "show", id)
	s.exec(t, `DROP OWNED BY `+role)
	s.exec(t, `DROP ROLE `+role)
}

// TestSaltIsNeverCreated by a command that prints records: afterwards the
// hashes of the records would differ.
func TestSaltIsNeverCreated(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	id := s.makeInDoubt(t, callOf("doubt"))
	s.sqlite(t, `DELETE FROM semel_salt`)
	for range 2 {
		s.runOn(t, "ls", "--json").want(t, exit.Unavailable, "read the salt")
	}
	s.sqlite(t, `DROP TABLE semel_salt`)
	s.runOn(t, "show", id).want(t, exit.Failed, "semel migrate")
	s.runOn(t, "resolve", id, "--to", "failed", "--reason", "r").want(t, exit.Failed, "semel migrate")
	s.must(t, "stats")
}
