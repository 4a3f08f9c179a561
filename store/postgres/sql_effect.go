package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sqlEffect is the possible effect of a call on its transaction.
type sqlEffect int

const (
	// staysInside: the call cannot end the transaction.
	staysInside sqlEffect = iota
	// mayEnd: the call may end the transaction, and the next call is then refused.
	mayEnd
	// mayEndAndWrite: the call may end the transaction and write outside of it.
	mayEndAndWrite
)

const blank = " \t\r\n\f\v"

// insideWords are the words that begin statements which cannot end a transaction. Any
// other word may be the name of a prepared statement.
var insideWords = strings.Fields(`alter analyze begin call close comment copy create declare delete do drop ` + //nolint:gochecknoglobals // constant
	`explain fetch grant import insert listen lock merge move notify refresh reindex release reset revoke savepoint security select ` +
	`set show start table truncate unlisten update values with`)

// effectOf returns the possible effect of a text, by the words that its statements
// begin with. A semicolon in a literal divides too often, which is safe.
func effectOf(sql string, args []any) sqlEffect {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.NamedArgs, pgx.StrictNamedArgs:
		case pgx.QueryRewriter:
			return mayEndAndWrite // the text that is sent is not known
		}
	}
	all := strings.Split(strings.TrimRight(skipComments(sql), ";"+blank), ";")
	if len(all) > 1 && hasComment(sql) {
		return mayEndAndWrite // a semicolon may be in a comment
	}
	most := staysInside
	for _, one := range all {
		most = max(most, effectOfOne(one))
	}
	if most == mayEnd && len(all) > 1 {
		return mayEndAndWrite
	}
	return most
}

func hasComment(sql string) bool { return strings.Contains(sql, "--") || strings.Contains(sql, "/*") }

// effectOfBatch is effectOf for statements that are sent together.
func effectOfBatch(b *pgx.Batch) sqlEffect {
	most := staysInside
	for _, q := range b.QueuedQueries {
		most = max(most, effectOf(q.SQL, q.Arguments))
	}
	if most == mayEnd && len(b.QueuedQueries) > 1 {
		return mayEndAndWrite
	}
	return most
}

// effectOfOne is effectOf for one statement without comments before it.
func effectOfOne(sql string) sqlEffect {
	words := strings.FieldsFunc(strings.ToLower(sql[:min(len(sql), 100)]), isNotWord)
	if len(words) == 0 || slices.Contains(insideWords, words[0]) {
		return staysInside
	}
	if !slices.Contains([]string{"abort", "commit", "end", "rollback"}, words[0]) || hasComment(sql) {
		return mayEndAndWrite
	}
	if len(words) > 1 && (words[1] == "work" || words[1] == "transaction") {
		words = words[1:]
	}
	switch {
	case len(words) == 1:
		return mayEnd
	case words[1] == "to":
		return staysInside // back to a savepoint
	default:
		return mayEndAndWrite // another transaction begins at once, or was prepared
	}
}

// isNotWord reports whether a character is not part of a word.
func isNotWord(r rune) bool {
	return r < 128 && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// skipComments cuts off the comments at the beginning of a text. It leaves a comment
// that contains another one as a word that may do anything.
func skipComments(sql string) string {
	for {
		sql = strings.TrimLeft(sql, blank)
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(strings.ReplaceAll(sql, "\r", "\n"), "\n")
		case strings.HasPrefix(sql, "/*"):
			comment, rest, closed := strings.Cut(sql[2:], "*/")
			if !closed || strings.Contains(comment, "/*") {
				return "unread"
			}
			sql = rest
		default:
			return sql
		}
	}
}
