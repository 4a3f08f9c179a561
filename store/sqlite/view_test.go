package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// viewRow is a row of semel_record_view without its times.
type viewRow struct {
	ID, Operation, State    string
	Attempt, Priority       int
	Tainted, DeadLetter     bool
	Due, LeaseEnds, Expires bool // whether there is a time
	FailureCode             sql.Null[string]
	InputBytes              int
	OutcomeBytes            int
}

const readView = `SELECT id, operation, state, attempt, priority, tainted, dead_letter,
due IS NOT NULL, lease_ends IS NOT NULL, expires IS NOT NULL, failure_code, input_bytes, outcome_bytes
FROM semel_record_view ORDER BY attempt`

// view reads the view.
func view(t *testing.T, db *sql.DB) []viewRow {
	t.Helper()
	rows := check.Must(db.QueryContext(t.Context(), readView))(t)
	defer rows.Close()
	var all []viewRow
	for rows.Next() {
		var r viewRow
		check.Require(t, rows.Scan(&r.ID, &r.Operation, &r.State, &r.Attempt, &r.Priority, &r.Tainted, &r.DeadLetter,
			&r.Due, &r.LeaseEnds, &r.Expires, &r.FailureCode, &r.InputBytes, &r.OutcomeBytes))
		all = append(all, r)
	}
	check.Require(t, rows.Err())
	return all
}

// The view shows records of each state that were written before the view existed,
// as the engine stores them and as it never does.
func TestRecordView(t *testing.T) {
	const day = 24 * time.Hour
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "semel.db")))(t)
	defer db.Close()
	migrateToVersion2(t, db)
	s := sqlite.New(db, sqlite.Options{})
	if _, err := s.Salt(t.Context()); !errors.Is(err, sqlite.ErrNoSchema) {
		t.Errorf("Salt before the migration = %v, want ErrNoSchema", err)
	}
	code := func(c string) sql.Null[string] { return sql.Null[string]{V: c, Valid: true} }
	var want []viewRow
	for i, c := range []struct {
		record store.Record
		row    viewRow
	}{
		{
			store.Record{Token: store.Token{State: store.Pending}, Due: day, Priority: -4, Input: []byte(`"s3cret"`)},
			viewRow{State: "Pending", Priority: -4, Due: true, InputBytes: 8},
		},
		{
			store.Record{Token: store.Token{State: store.InProgress}, Due: day, Tainted: true, Outcome: []byte("s3cret")},
			viewRow{State: "InProgress", LeaseEnds: true, Tainted: true, OutcomeBytes: 6},
		},
		{store.Record{Token: store.Token{State: store.InDoubt}, Outcome: []byte("s3cret")}, viewRow{State: "InDoubt", OutcomeBytes: 6}},
		{
			store.Record{Token: store.Token{State: store.InDoubt}, Outcome: []byte(`d{"code":"a\"b"}`)},
			viewRow{State: "InDoubt", DeadLetter: true, FailureCode: code(`a"b`), OutcomeBytes: 16},
		},
		{
			store.Record{Token: store.Token{State: store.Succeeded}, Expire: day, Outcome: []byte(`f{"code":"no"}`)},
			viewRow{State: "Succeeded", Expires: true, OutcomeBytes: 14},
		},
		{
			store.Record{Token: store.Token{State: store.Failed}, Expire: day, Outcome: []byte(`f{"code":"no","message":"s3cret \u0000"}`)},
			viewRow{State: "Failed", Expires: true, FailureCode: code("no"), OutcomeBytes: 40},
		},
		{store.Record{Token: store.Token{State: store.Failed}}, viewRow{State: "Failed"}},
		{store.Record{Token: store.Token{State: store.Failed}, Outcome: []byte("f\xff\x00{")}, viewRow{State: "Failed", OutcomeBytes: 4}},
		{
			store.Record{Token: store.Token{State: store.Failed}, Outcome: []byte(`d{"message":"s3cret"}`)},
			viewRow{State: "Failed", DeadLetter: true, OutcomeBytes: 21},
		},
	} {
		r := c.record
		r.Operation, r.Scope, r.Key, r.Fingerprint = `pay\5`, "s3cret", "s3cret "+string(rune(i)), []byte("s3cret")
		r.Attempt, r.Owner, r.ID = uint32(i), 1, store.NewID(r.Operation, r.Scope, r.Key)
		mustApply(t, s, store.Change{To: r})
		c.row.ID, c.row.Operation, c.row.Attempt = r.ID.String(), r.Operation, i
		want = append(want, c.row)
	}
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	if diff := cmp.Diff(want, view(t, db)); diff != "" {
		t.Errorf("the view differs (-want +got):\n%s", diff)
	}
	const columns = `SELECT group_concat(name, ' ') FROM pragma_table_info('semel_record_view')`
	const wantColumns = "id operation state attempt priority tainted created changed due lease_ends expires dead_letter failure_code input_bytes outcome_bytes"
	var got string
	if err := db.QueryRowContext(t.Context(), columns).Scan(&got); err != nil || got != wantColumns {
		t.Errorf("the view has the columns %s, %v, want %s", got, err, wantColumns)
	}
	const otherTimes = `SELECT count(*) FROM semel_record_view v JOIN semel_records r ON lower(hex(r.id)) = v.id
WHERE abs(unixepoch(v.created, 'subsec') - r.created / 1e6) > 0.001 OR abs(unixepoch(v.changed, 'subsec') - r.changed / 1e6) > 0.001
OR abs(unixepoch(coalesce(v.due, v.lease_ends), 'subsec') - r.due / 1e6) > 0.001
OR abs(unixepoch(v.expires, 'subsec') - r.expires / 1e6) > 0.001`
	var differ int
	if err := db.QueryRowContext(t.Context(), otherTimes).Scan(&differ); err != nil || differ != 0 {
		t.Errorf("%d rows have other times than their records, %v", differ, err)
	}
	runDocumentedQueries(t, db)
}

// runDocumentedQueries runs the queries of docs/operations.md over the view.
func runDocumentedQueries(t *testing.T, db *sql.DB) {
	t.Helper()
	page := check.Must(os.ReadFile("../../docs/operations.md"))(t)
	ran := 0
	for _, rest := range strings.Split(string(page), "```sql\n")[1:] {
		query, _, _ := strings.Cut(rest, "```")
		if !strings.Contains(query, "FROM semel_record_view") {
			continue
		}
		ran++
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatalf("%s\n%v", query, err)
		}
		if !rows.Next() || rows.Err() != nil {
			t.Errorf("%s\nfound nothing, %v", query, rows.Err())
		}
		rows.Close()
	}
	if ran == 0 {
		t.Error("docs/operations.md has no query over the view")
	}
}

// migrateToVersion2 creates the tables as version 2 of the schema did.
func migrateToVersion2(t *testing.T, db *sql.DB) {
	t.Helper()
	statements := []string{
		`CREATE TABLE semel_migrations (version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL)`,
		`INSERT INTO semel_migrations VALUES (1, true), (2, true)`,
	}
	for _, name := range []string{"00001_records.up.sql", "00002_rare_states.up.sql"} {
		text := check.Must(fs.ReadFile(sqlite.Schema(), name))(t)
		statements = append(statements, string(text))
	}
	for _, statement := range statements {
		check.Must(db.ExecContext(t.Context(), statement))(t)
	}
}

// Each database has a salt of its own, which another migration does not change.
func TestSaltsDiffer(t *testing.T) {
	first, second := open(t), open(t)
	salt := func(db *sql.DB) string {
		salt, err := sqlite.New(db, sqlite.Options{}).Salt(context.Background())
		if err != nil || len(salt) != 32 {
			t.Fatalf("Salt = %d bytes, %v, want 32", len(salt), err)
		}
		return string(salt)
	}
	before := salt(first)
	check.Require(t, sqlitemigrate.Up(t.Context(), first, sqlitemigrate.Options{}))
	if salt(first) != before || salt(second) == before {
		t.Errorf("the salts are %x, then %x, and %x in another database", before, salt(first), salt(second))
	}
}
