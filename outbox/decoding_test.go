package outbox_test

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

// TestLogicalDecoding: the log of the server has what Debezium's outbox event router needs,
// in the order of the commits. It has nothing of a transaction that was rolled back, and
// also the rows that were deleted.
func TestLogicalDecoding(t *testing.T) {
	t.Parallel()
	d := onPostgresOf(t, realtest.OwnPostgres(t, "wal_level=logical"))
	d.Exec(`SELECT pg_create_logical_replication_slot('debezium', 'test_decoding')`)
	e := newEngine(t, d.Store, semel.Options{})
	first, second, undone := d.begin(), d.begin(), d.begin()
	large := about("a", "first")
	large.Payload = make([]byte, outbox.MaxPayload) // is stored outside of the row
	large.Headers = map[string]string{"trace": "t'1"}
	check.Require(t, outbox.AppendTx(t.Context(), e, first.tx, large))
	check.Require(t, outbox.AppendTx(t.Context(), e, second.tx, about("b", "second"), about("b", "third")))
	check.Require(t, outbox.AppendTx(t.Context(), e, undone.tx, about("c", "undone")))
	undone.rollback()
	second.commit()
	first.commit()
	d.Exec(`DELETE FROM semel_outbox WHERE seq IN (
  SELECT seq FROM semel_outbox WHERE created < now() + interval '1 day' ORDER BY seq LIMIT 10000)`)

	rows := d.decoded()
	var got []string
	for _, r := range rows {
		payload, err := hex.DecodeString(r["payload[bytea]"])
		check.Require(t, err)
		if len(payload) > 100 {
			payload = fmt.Appendf(nil, "%d bytes", len(payload))
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %s", r["aggregatetype[text]"], r["aggregateid[text]"], r["type[text]"], payload, r["headers[text]"]))
		if len(r["id[uuid]"]) != 36 || r["created[timestamp with time zone]"] == "" {
			t.Errorf("an event has the ID %q and the time %q", r["id[uuid]"], r["created[timestamp with time zone]"])
		}
	}
	want := []string{
		"orders b Changed second {}", "orders b Changed third {}",
		fmt.Sprintf(`orders a Changed %d bytes {"trace":"t''1"}`, outbox.MaxPayload),
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has the events %q, want %q", got, want)
	}
	if n := d.rows("semel_outbox"); n != 0 {
		t.Errorf("%d rows are left, want none", n)
	}
}

// TestDebeziumColumns: on each database the table has the columns that Debezium's outbox event router reads
// by default, under their default names: table.field.event.id, route.by.field, table.field.event.key and
// table.field.event.payload. The type is placed into a header.
func TestDebeziumColumns(t *testing.T) {
	t.Parallel()
	onAll(t, suite{debeziumColumns[*sql.Tx], debeziumColumns[pgx.Tx]})
}

func debeziumColumns[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	d.write(newEngine(t, d.Store, semel.Options{}), about("a", "body"))
	for column, want := range map[string]string{"aggregatetype": "orders", "aggregateid": "a", "type": "Changed", "payload": "body"} {
		var got []byte
		d.Scan(&got, `SELECT `+column+` FROM semel_outbox`)
		if string(got) != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
	var id string
	d.Scan(&id, `SELECT CAST(id AS CHAR(36)) FROM semel_outbox`)
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("id is %q, want a UUID", id)
	}
}

// column is a column of a row as test_decoding writes it.
var column = regexp.MustCompile(`(\w+\[[\w ]+\]):(?:'(?:\\x)?((?:[^']|'')*)'|(\S+))`)

// decoded returns the columns of the inserted rows of the outbox.
func (d *database[Tx]) decoded() (rows []map[string]string) {
	d.t.Helper()
	var all []string
	d.Scan(&all, `SELECT coalesce(array_agg(data), '{}') FROM pg_logical_slot_get_changes('debezium', NULL, NULL)
WHERE data LIKE 'table public.semel\_outbox: INSERT:%'`)
	for _, line := range all {
		row := make(map[string]string)
		for _, c := range column.FindAllStringSubmatch(line, -1) {
			row[c[1]] = c[2] + c[3]
		}
		rows = append(rows, row)
	}
	return rows
}
