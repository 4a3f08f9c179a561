package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/semelgo/semel/store"
)

// First claims that come together are made by one statement, openMany or openFew at
// a time: half of what a statement costs is not its row.
const (
	openMany = 16
	openFew  = 4
)

// openAll is the statement that opens n records, in a transaction that has read the
// time. Those that are there already are left as they are. When SQLite refuses one,
// what the statement has done until then is not undone (OR FAIL): to be able to, it
// would copy every page.
func openAll(n int) string {
	const one = `(?1, ?1, 2, 1, ?, ?1 + ?, 0, ?, ?, ?, ?, coalesce(?, x''), 0, NULL, x'', x'')`
	return `INSERT OR FAIL ` + into + `VALUES ` + strings.Repeat(one+", ", n-1) + one + orNothing
}

// errApart says that SQLite has refused one of the claims that were made together.
// The transaction is to be rolled back: the one may have been refused by a trigger that
// came after its row, which stands.
var errApart = errors.New("semel/sqlite: not together")

// openTogether makes first claims, and answers those that it has made or found
// something in the way of. It leaves to be made one by one what is fewer than
// openFew.
func (s *session) openTogether(ctx context.Context, changes []store.Change, answers []store.SwapResult) error {
	ctx = unending(ctx)
	if len(changes) < readsTime {
		return nil
	}
	if err := s.readTime(ctx, len(changes)); err != nil {
		return err
	}
	var all []int
	for i := range changes {
		if answers[i].Err == nil && changes[i].If == (store.Token{}) && opens(&changes[i].To) {
			all = append(all, i)
		}
	}
	for len(all) >= openFew {
		n, v := openFew, verbOpenFew
		if len(all) >= openMany {
			n, v = openMany, verbOpenMany
		}
		err := s.openSome(ctx, v, changes, all[:n], answers)
		switch {
		case isRefusal(err):
			return errApart
		case err != nil:
			return err
		}
		all = all[n:]
	}
	return nil
}

// openSome makes some of the changes by one statement. If it has not made all, it
// reads what stands: an owner of ours is our own claim.
func (s *session) openSome(ctx context.Context, v verb, changes []store.Change, some []int, answers []store.SwapResult) error {
	args := append(s.args[:0], s.at)
	for _, i := range some {
		args = openArgs(args, &changes[i].To)
	}
	s.args = args
	made, err := s.exec(ctx, v, args...)
	if err != nil {
		return err
	}
	if made == int64(len(some)) {
		for _, i := range some {
			answers[i] = store.SwapResult{Token: changes[i].To.Token}
		}
		return nil
	}
	return s.standInstead(ctx, changes, some, answers)
}

func (s *session) standInstead(ctx context.Context, changes []store.Change, some []int, answers []store.SwapResult) error {
	ids, stand := make([]store.ID, len(some)), make([]store.SwapResult, len(some))
	for n, i := range some {
		ids[n] = changes[i].To.ID
	}
	if err := getSome(ctx, s.stmt(ctx, verbGetMany), ids, stand); err != nil {
		return err
	}
	for n, i := range some {
		if answers[i] = stand[n]; answers[i].Token == changes[i].To.Token {
			answers[i].Record = nil
		}
	}
	return nil
}
