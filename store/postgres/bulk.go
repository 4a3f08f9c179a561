package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// bulkArgs returns the parameters of a bulk statement: one array for each parameter
// of the single statement.
func bulkArgs(items []*swapItem) []any {
	n := len(items)
	ids, taints := make([]pgtype.UUID, n), make([]bool, n)
	dues, expires := make([]pgtype.Int8, n), make([]pgtype.Int8, n)
	inputs, outcomes := make([][]byte, n), make([][]byte, n)
	made, asked := newTokens(n), newTokens(n)
	waits := make([]bool, n)
	for i, it := range items {
		to := &it.To
		ids[i], taints[i], waits[i] = uuid(to.ID), to.Tainted, it.IfDue
		dues[i], expires[i] = times(to)
		inputs[i], outcomes[i] = to.Input, to.Outcome
		made.put(i, to.Token)
		asked.put(i, it.If)
	}
	k := kindOf(items[0].Change)
	if k == create {
		return append([]any{ids, made.states, made.attempts, made.owners, dues, expires, taints},
			append(identities(items), inputs, outcomes)...)
	}
	args := []any{ids, asked.states, asked.attempts, asked.owners, waits}
	if k == beat {
		return append(args, dues, expires)
	}
	return append(args, made.states, made.attempts, made.owners, dues, expires, taints, inputs, outcomes)
}

// tokenColumns are the columns of tokens.
type tokenColumns struct {
	states   []int16
	attempts []int32
	owners   []int64
}

func newTokens(n int) tokenColumns {
	return tokenColumns{make([]int16, n), make([]int32, n), make([]int64, n)}
}

func (t tokenColumns) put(i int, token store.Token) {
	s := stored(token)
	t.states[i], t.attempts[i], t.owners[i] = s.state, s.attempt, s.owner
}

// identities returns the columns that only a create writes: operation, scope, key,
// fingerprint and priority.
func identities(items []*swapItem) []any {
	n := len(items)
	operations, scopes := make([][]byte, n), make([][]byte, n)
	keys, fingerprints := make([][]byte, n), make([][]byte, n)
	priorities := make([]int16, n)
	for i, it := range items {
		operations[i], scopes[i] = []byte(it.To.Operation), []byte(it.To.Scope)
		keys[i], fingerprints[i] = []byte(it.To.Key), it.To.Fingerprint
		priorities[i] = int16(it.To.Priority)
	}
	return []any{operations, scopes, keys, fingerprints, priorities}
}
