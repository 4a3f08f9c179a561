package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semelgo/semel"
)

// ErrConflict means that a transition is not allowed from the row's current state, or
// that another caller has changed the row meanwhile. Nothing was changed.
var ErrConflict = errors.New("semel/guard: conflict")

// Transitions declares the allowed transitions of a state machine: for each state, the
// states that it may follow.
type Transitions[S comparable] map[S][]S

// Placeholder stands for a state in the arguments of [Change].Update.
type Placeholder uint8

const (
	// From is the state in which the row was found. The update must compare the
	// row's state with it.
	From Placeholder = iota + 1
	// To is the state that the update must set.
	To
)

// Change is one transition of one row. R is the type of the row, S that of its state.
type Change[R any, S comparable] struct {
	Allowed Transitions[S]
	To      S
	// Update sets the state, if it has not changed. Its arguments must contain
	// [From] and [To]:
	//
	//	guard.Query(`UPDATE orders SET state = $1 WHERE id = $2 AND state = $3`, guard.To, id, guard.From)
	Update Statement
	// Select reads the row, at most one.
	Select Statement
	// Scan reads the row, and its state, from the result of Select.
	Scan func(Row) (R, S, error)
}

// Transition changes the state of one row, if the transition is declared and no other
// caller changes the row meanwhile: the mode "state machine with optimistic lock". Of
// any number of concurrent callers, one changes the row.
//
// It returns the current row: the changed one, or, with [ErrConflict], the row that
// does not allow the transition. If that row has the state To already, an earlier
// call, or another caller's, has made the transition; the row does not show which
// of the two. Without a row the error is sql.ErrNoRows. If the update changes several rows,
// the error is [ErrRows], and if it leaves another state than To, the error is
// [semel.ErrInvalid]; either update is undone.
//
// In a transaction, the update runs within a savepoint. On a database, Transition
// begins a transaction of its own; an error of its COMMIT does not tell whether the
// row was changed.
func Transition[R any, S comparable](ctx context.Context, c Conn, t Change[R, S]) (current R, err error) {
	if err := t.valid(); err != nil {
		return current, err
	}
	current, state, err := t.read(ctx, c)
	if err != nil {
		return current, err
	}
	if !slices.Contains(t.Allowed[t.To], state) {
		return current, fmt.Errorf("%w: the state is %v, which %v cannot follow", ErrConflict, state, t.To)
	}
	err = changeOne(ctx, c, t.update(state), func(c Conn, rows int64) error {
		if rows == 0 {
			return ErrConflict
		}
		var now S
		if current, now, err = t.read(ctx, c); err == nil && now != t.To {
			err = &semel.FieldError{Field: "Update", Reason: fmt.Sprintf("has left the state %v, want %v", now, t.To)}
		}
		return err
	})
	if !errors.Is(err, ErrConflict) {
		if err != nil {
			err = fmt.Errorf("semel/guard: update: %w", err)
		}
		return current, err
	}
	found := state
	if current, state, err = t.read(ctx, c); err != nil {
		return current, err
	}
	if state == found {
		return current, fmt.Errorf("%w: the update has changed no row, although the state is still %v: "+
			"another condition of it does not hold, or the transaction reads an old snapshot", ErrConflict, state)
	}
	return current, fmt.Errorf("%w: the state has changed from %v to %v meanwhile", ErrConflict, found, state)
}

func (t *Change[R, S]) valid() error {
	switch {
	case t.Scan == nil:
		return &semel.FieldError{Field: "Scan", Reason: "is missing"}
	case len(t.Allowed[t.To]) == 0:
		return &semel.FieldError{Field: "Allowed", Reason: fmt.Sprintf("has no transition to %v", t.To)}
	case !slices.Contains(t.Update.args, any(From)) || !slices.Contains(t.Update.args, any(To)):
		return &semel.FieldError{Field: "Update", Reason: "must have guard.From and guard.To among its arguments"}
	}
	return nil
}

func (t *Change[R, S]) read(ctx context.Context, c Conn) (R, S, error) {
	row, state, err := t.Scan(c.row(ctx, t.Select.text, t.Select.args))
	if err != nil {
		err = fmt.Errorf("semel/guard: select: %w", err)
	}
	return row, state, err
}

// update returns the update with the states in place of From and To.
func (t *Change[R, S]) update(from S) Statement {
	args := slices.Clone(t.Update.args)
	for i, arg := range args {
		switch arg {
		case From:
			args[i] = from
		case To:
			args[i] = t.To
		}
	}
	return Statement{t.Update.text, args}
}
