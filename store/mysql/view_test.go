package mysql_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// The view shows records of each state, with names and outcomes of any bytes. Its hashes
// are those of the salt.
func TestRecordView(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t)+"?parseTime=true")
	s := newStore(t, db)
	salt, err := s.Salt(t.Context())
	if err != nil || len(salt) != 32 {
		t.Fatalf("Salt = %x, %v, want 32 bytes", salt, err)
	}
	outcomes := []string{"\xff\xfe", `d{"code":"declined"}`, `f{"code":"declined"}`, "d{", "f\xff{}", "", "x"}
	for i, outcome := range outcomes {
		for _, state := range store.States() {
			c := create(string([]byte{0xff, '\'', byte('a' + i), byte(state)}), state, 1)
			c.To.Outcome, c.To.Input, c.To.Due, c.To.Expire = []byte(outcome), []byte("in"), time.Hour, time.Hour
			mustApply(t, s, c)
			var shown, scope, key string
			var code *string
			var created time.Time
			var due, lease *time.Time
			var dead bool
			var in, out int
			check.Require(t, db.QueryRowContext(t.Context(), `SELECT state, scope_hash, key_hash, failure_code, created, due, lease_ends, dead_letter, input_bytes, outcome_bytes
FROM semel_record_view WHERE id = ?`, c.To.ID.String()).Scan(&shown, &scope, &key, &code, &created, &due, &lease, &dead, &in, &out), "%v %q", state, outcome)
			ended := state == store.InDoubt || state == store.Failed
			if shown != state.String() || scope != hash(salt, c.To.Scope) || key != hash(salt, c.To.Key) || in != 2 || out != len(outcome) ||
				(due != nil) != (state == store.Pending) || (lease != nil) != (state == store.InProgress) || time.Since(created).Abs() > time.Hour ||
				dead != (ended && outcome != "" && outcome[0] == 'd') || (code != nil) != (ended && (i == 1 || i == 2)) || code != nil && *code != "declined" {
				t.Errorf("%v %q: the view has %s, %s, %s, %v, %v, %v, %v, %v, %d, %d", state, outcome, shown, scope, key, code, created, due, lease, dead, in, out)
			}
		}
	}
}

func hash(salt []byte, value string) string {
	sum := sha256.Sum256(append(append([]byte{}, salt...), value...))
	return hex.EncodeToString(sum[:])[:12]
}
