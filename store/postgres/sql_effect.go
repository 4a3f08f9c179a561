package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// reach is how far the effect of a call can go.
type sqlEffect int

const (
	// reachInside stays inside the transaction.
	reachInside sqlEffect = iota
	// reachEnd may end it, and then nothing can come in its place: the next call
	// is refused.
	reachEnd
	// reachBeyond may end it, and write something outside of it as well.
	reachBeyond
)

// reachOf tells how far a text may go, by an allow-list of the words that
// statements begin with. A text that is the name of a prepared statement is on no
// list.
func effectOf(sql string, args []any) sqlEffect {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.NamedArgs, pgx.StrictNamedArgs:
		case pgx.QueryRewriter:
			return reachBeyond // which text is sent is not known
		}
	}
	sql = strings.TrimRight(skipComments(sql), ";"+blank)
	if !strings.Contains(sql, ";") {
		return effectOfOne(sql)
	}
	if strings.Contains(sql, "--") || strings.Contains(sql, "/*") {
		return reachBeyond // a semicolon may be in a comment, and hide what follows
	}
	// In a literal a semicolon divides too often, which hides nothing.
	for one := range strings.SplitSeq(sql, ";") {
		if effectOfOne(one) != reachInside {
			return reachBeyond
		}
	}
	return reachInside
}

// reachOfBatch is reachOf for statements that are sent together.
func effectOfBatch(b *pgx.Batch) sqlEffect {
	most := reachInside
	for _, q := range b.QueuedQueries {
		most = max(most, effectOf(q.SQL, q.Arguments))
	}
	if most == reachEnd && len(b.QueuedQueries) > 1 {
		return reachBeyond
	}
	return most
}

// reachOfPrepared is reachOf for a statement that can be run by its name.
func effectOfPrepared(sql string) sqlEffect {
	if effectOf(sql, nil) == reachInside {
		return reachInside
	}
	return reachBeyond
}

const blank = " \t\r\n\f\v"

// noWord says that a character is of no word.
func isNotWord(r rune) bool {
	return r < 128 && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func effectOfOne(sql string) sqlEffect {
	sql = strings.TrimLeftFunc(sql, isNotWord)
	word := sql
	if end := strings.IndexFunc(sql, isNotWord); end >= 0 {
		word = sql[:end] // the rest is of interest of few statements
	}
	switch strings.ToLower(word) {
	case "":
		return reachInside
	case "alter", "analyze", "begin", "call", "close", "comment", "copy", "create", "declare", "delete", "do", "drop",
		"explain", "fetch", "grant", "import", "insert", "listen", "lock", "merge", "move", "notify", "refresh", "reindex",
		"release", "reset", "revoke", "savepoint", "security", "select", "set", "show", "start", "table", "truncate",
		"unlisten", "update", "values", "with":
		return reachInside
	case "abort", "commit", "end", "rollback":
		if strings.Contains(sql, "--") || strings.Contains(sql, "/*") {
			return reachBeyond // what follows may be a comment's words
		}
		return effectOfEnd(strings.FieldsFunc(strings.ToLower(sql), isNotWord)[1:])
	default:
		return reachBeyond
	}
}

// reachOfEnd tells how far it goes what ends a transaction, or goes back within it.
func effectOfEnd(words []string) sqlEffect {
	if len(words) > 0 && (words[0] == "work" || words[0] == "transaction") {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return reachEnd
	case words[0] == "to":
		return reachInside
	default: // another one begins at once, or was prepared
		return reachBeyond
	}
}

// skipComments cuts off the comments that a text begins with.
func skipComments(sql string) string {
	for {
		sql = strings.TrimLeft(sql, blank)
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(strings.ReplaceAll(sql, "\r", "\n"), "\n")
		case strings.HasPrefix(sql, "/*"):
			sql = skipComment(sql)
		default:
			return sql
		}
	}
}

// skipComment cuts off one comment, with those in it.
func skipComment(sql string) string {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return sql[i+1:]
		}
	}
	return ""
}

// onlyData tells whether a text that stays inside a transaction can do nothing to it
// at all: neither make it one that has to be ended, nor savepoints or settings.
func onlyData(sql string) bool {
	sql = skipComments(sql)
	end := strings.IndexFunc(sql, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
	if end < 0 || strings.Contains(sql, ";") {
		return false
	}
	switch strings.ToLower(sql[:end]) {
	case "delete", "insert", "merge", "select", "update", "values", "with":
		return true
	default:
		return false
	}
}
