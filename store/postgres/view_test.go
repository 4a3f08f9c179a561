package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// viewRow is a row of semel_record_view without its times.
type viewRow struct {
	ID, Operation, State, ScopeHash, KeyHash string
	Attempt                                  int32
	Priority                                 int16
	Tainted                                  bool
	Due, LeaseEnds, Expires, DeadLetter      bool // the times: whether there is one
	FailureCode                              *string
	InputBytes, OutcomeBytes                 int32
}

const readView = `SELECT id, operation, state, scope_hash, key_hash, attempt, priority, tainted,
due IS NOT NULL, lease_ends IS NOT NULL, expires IS NOT NULL, dead_letter, failure_code, input_bytes, outcome_bytes
FROM semel_record_view ORDER BY attempt`

// viewCase is a record and its row in the view, apart from what both have.
type viewCase struct {
	record store.Record
	row    viewRow
}

// viewCases are records of each state, as the engine stores them and as it never does.
func viewCases() []viewCase {
	const day = 24 * 60 * 60 * 1e9
	failure := func(kind string) []byte { return []byte(kind + `{"code":"declined","message":"s3cret \u0000"}`) }
	declined := "declined"
	dead := viewRow{DeadLetter: true, FailureCode: &declined, OutcomeBytes: int32(len(failure("d")))}
	failed, doubtful := dead, dead
	failed.State, failed.Expires, failed.DeadLetter = "Failed", true, false
	doubtful.State = "InDoubt"
	dead.State = "Failed"
	return []viewCase{
		{
			store.Record{Token: store.Token{State: store.Pending}, Due: day, Priority: -4, Input: []byte(`"s3cret"`)},
			viewRow{State: "Pending", Priority: -4, Due: true, InputBytes: 8},
		},
		{
			store.Record{Token: store.Token{State: store.InProgress}, Due: day, Tainted: true, Outcome: []byte("s3cret")},
			viewRow{State: "InProgress", LeaseEnds: true, Tainted: true, OutcomeBytes: 6},
		},
		{store.Record{Token: store.Token{State: store.InDoubt}, Outcome: []byte("s3cret")}, viewRow{State: "InDoubt", OutcomeBytes: 6}},
		{store.Record{Token: store.Token{State: store.InDoubt}, Outcome: failure("d")}, doubtful},
		{
			store.Record{Token: store.Token{State: store.Succeeded}, Expire: day, Outcome: failure("f")}, // a result of no meaning here
			viewRow{State: "Succeeded", Expires: true, OutcomeBytes: failed.OutcomeBytes},
		},
		{store.Record{Token: store.Token{State: store.Failed}, Expire: day, Outcome: failure("f")}, failed},
		{store.Record{Token: store.Token{State: store.Failed}, Outcome: failure("d")}, dead},
		{store.Record{Token: store.Token{State: store.Failed}}, viewRow{State: "Failed"}},
		{store.Record{Token: store.Token{State: store.Failed}, Outcome: []byte(`f{"code":"s3cr`)}, viewRow{State: "Failed", OutcomeBytes: 14}},
		{store.Record{Token: store.Token{State: store.Failed}, Outcome: []byte("f\xff\x00{")}, viewRow{State: "Failed", OutcomeBytes: 4}},
		{
			store.Record{Token: store.Token{State: store.Failed}, Outcome: []byte(`f{"message":"\"code\":\"s3cret\""}`)},
			viewRow{State: "Failed", OutcomeBytes: 34},
		},
	}
}

// writeViewCases stores the cases and returns the rows that the view must have. The
// attempt is the number of the case.
func writeViewCases(t *testing.T, s *postgres.Store) []viewRow {
	t.Helper()
	salt := mustSalt(t, s)
	var want []viewRow
	for i, c := range viewCases() {
		r, row := c.record, c.row
		r.Operation, r.Scope, r.Key = `pay\5`, "s3cret scope \xff\x00", "s3cret key "+row.State+"\x00"
		if i%2 == 0 {
			r.Operation = "mail.v2"
		}
		r.Attempt, r.Owner, r.Fingerprint = uint32(i), 1, []byte("s3cret")
		r.ID = store.NewID(r.Operation, r.Scope, r.Key+row.State+string(rune(i)))
		mustForce(t, s, store.Change{To: r})
		row.ID, row.Operation, row.Attempt = r.ID.String(), r.Operation, int32(i)
		row.ScopeHash, row.KeyHash = saltedHash(salt, r.Scope), saltedHash(salt, r.Key)
		want = append(want, row)
	}
	return want
}

// saltedHash is the definition of the hashes.
func saltedHash(salt []byte, value string) string {
	sum := sha256.Sum256(append(append([]byte{}, salt...), value...))
	return hex.EncodeToString(sum[:6])
}

func mustSalt(t *testing.T, s *postgres.Store) []byte {
	t.Helper()
	salt, err := s.Salt(t.Context())
	if err != nil || len(salt) != sha256.Size {
		t.Fatalf("Salt = %d bytes, %v, want 32", len(salt), err)
	}
	return salt
}

// wantView requires that the view has these rows, the times of the records, and nothing
// that belongs to a caller.
func wantView(t *testing.T, pool *pgxpool.Pool, want []viewRow) {
	t.Helper()
	rows := check.Must(pool.Query(t.Context(), readView))(t)
	got := check.Must(pgx.CollectRows(rows, pgx.RowToStructByPos[viewRow]))(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the view differs (-want +got):\n%s", diff)
	}
	const sameTimes = `SELECT count(*) FROM semel_record_view v JOIN semel_records r ON replace(r.id::text, '-', '') = v.id
WHERE (v.created, v.changed) = (r.created, r.changed) AND v.expires IS NOT DISTINCT FROM r.expires
AND coalesce(v.due, v.lease_ends) IS NOT DISTINCT FROM r.due`
	if n := one[int](t, pool, sameTimes); n != len(want) {
		t.Errorf("%d of %d rows have the times of their records", n, len(want))
	}
	if shown := one[string](t, pool, `SELECT string_agg(v::text, '') FROM semel_record_view v`); strings.Contains(shown, "s3cret") {
		t.Errorf("the view shows what belongs to a caller: %s", shown)
	}
}

// The view shows records of each state, in a plain and in a partitioned table, in any
// schema.
func TestRecordView(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	pool := connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = `"of ""ours""", public` })
	mustExec(t, pool, `CREATE SCHEMA "of ""ours"""`)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	s := newStore(t, pool, postgres.Options{})
	want := writeViewCases(t, s)
	wantView(t, pool, want)

	mustExec(t, pool, `GRANT SELECT ON semel_record_view TO pg_monitor`)
	divided(t, pool, postgres.PartitionOptions{})
	timed := at(0, "timed", store.Succeeded, 1)
	timed.To.Attempt = 100
	mustForce(t, s, timed)
	if in := place(t, pool, timed); in == "semel_records_first" {
		t.Errorf("the record is in %s, so that the test shows nothing", in)
	}
	salt := mustSalt(t, s)
	wantView(t, pool, append(want, viewRow{
		ID: timed.To.ID.String(), Operation: "test", State: "Succeeded", Attempt: 100,
		ScopeHash: saltedHash(salt, "scope"), KeyHash: saltedHash(salt, "timed"),
	}))
	if !one[bool](t, pool, `SELECT has_table_privilege('pg_monitor', 'semel_record_view', 'SELECT')`) {
		t.Error("the view has lost its privileges")
	}
}

// A database of an earlier version, with records and partitions, gets the view.
func TestRecordViewOfRecordsFromBefore(t *testing.T) {
	t.Parallel()
	pool := connect(t, realtest.Postgres(t).Database(t))
	migrateToVersion2(t, pool)
	s := newStore(t, pool, postgres.Options{})
	c := create("key", store.InDoubt, 1)
	mustForce(t, s, c)
	if _, err := s.Salt(t.Context()); postgres.CodeOf(err) != "42P01" {
		t.Errorf("Salt before the migration = %v, want that the table is missing", err)
	}
	divided(t, pool, postgres.PartitionOptions{})
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	salt := mustSalt(t, s)
	wantView(t, pool, []viewRow{{
		ID: c.To.ID.String(), Operation: "test", State: "InDoubt", Attempt: 1,
		ScopeHash: saltedHash(salt, "scope"), KeyHash: saltedHash(salt, "key"),
	}})
}

// migrateToVersion2 creates the tables as version 2 of the schema did.
func migrateToVersion2(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, name := range []string{"00001_records.up.sql", "00002_rare_states.up.sql"} {
		text := check.Must(fs.ReadFile(postgres.Schema(), name))(t)
		mustExec(t, pool, string(text))
	}
	mustExec(t, pool, `CREATE TABLE semel_migrations (version_id bigint NOT NULL, is_applied boolean NOT NULL)`)
	mustExec(t, pool, `INSERT INTO semel_migrations VALUES (1, true), (2, true)`)
}

// Each database has a salt of its own, which another migration does not change.
func TestSaltsDiffer(t *testing.T) {
	t.Parallel()
	pools := []*pgxpool.Pool{connect(t, database(t)), connect(t, database(t))}
	var salts []string
	for _, pool := range append(pools, pools[0]) {
		check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
		salts = append(salts, string(mustSalt(t, newStore(t, pool, postgres.Options{}))))
	}
	if salts[0] == salts[1] || salts[0] != salts[2] {
		t.Errorf("the salts are %x, want the first and the last to be the same, and no other", salts)
	}
}

// sqlBlocks returns the blocks of SQL of docs/operations.md that name the view.
func sqlBlocks(t *testing.T) []string {
	t.Helper()
	page := check.Must(os.ReadFile("../../docs/operations.md"))(t)
	var blocks []string
	for _, rest := range strings.Split(string(page), "```sql\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		if strings.Contains(block, "semel_record_view") {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// The role of dashboards that docs/operations.md makes runs the queries of that page,
// and reads nothing else.
func TestRoleOfDashboards(t *testing.T) {
	t.Parallel()
	url := database(t)
	owner := connect(t, url)
	writeViewCases(t, newStore(t, owner, postgres.Options{}))
	role := one[string](t, owner, `SELECT current_database()::text`) + "_dashboards"
	blocks := sqlBlocks(t)
	if len(blocks) < 2 {
		t.Fatalf("docs/operations.md has the blocks %q, want those that grant and at least one query", blocks)
	}
	grants := strings.ReplaceAll(blocks[0], "dashboards", role)
	mustExec(t, owner, grants)
	dashboards := connect(t, url, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SET ROLE `+role)
			return err
		}
	})
	for _, query := range blocks[1:] {
		rows := check.Must(dashboards.Query(t.Context(), query))(t)
		found := 0
		for rows.Next() {
			found++
		}
		if rows.Err() != nil || found == 0 {
			t.Errorf("%s\nfound %d rows, %v", query, found, rows.Err())
		}
	}
	for _, refused := range []string{
		`SELECT FROM semel_records`, `SELECT FROM semel_notes`, `SELECT FROM semel_salt`,
		`UPDATE semel_record_view SET priority = 4`, `DELETE FROM semel_record_view`,
	} {
		if _, err := dashboards.Exec(t.Context(), refused); postgres.CodeOf(err) != "42501" {
			t.Errorf("%s = %v, want that the role may not", refused, err)
		}
	}
	mustExec(t, owner, `DROP OWNED BY `+role)
	mustExec(t, owner, `DROP ROLE `+role)
}
