package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semelgo/semel/store"
)

// instead returns the error of a transaction in which a statement failed with met, which
// is not the handler's answer. The handler returned failed, which may be nil.
func instead(met, failed error) error {
	switch {
	case met == nil, failed != nil && (isConflict(failed) || isInterrupted(failed)):
		return withMark(failed)
	case failed == nil:
		return met
	default:
		return fmt.Errorf("%w (after %w)", met, failed)
	}
}

// isNoSavepoint reports whether the transaction's own savepoint is gone, and with it
// the transaction.
func isNoSavepoint(err error) bool {
	return codeOf(err) == codeNoSavepoint && strings.Contains(err.Error(), "semelrun")
}

// dead returns the verdict of a transaction that the server has rolled back, or will,
// because its connection is lost. Only a statement of the handler can have ended it
// before.
func (t *transaction) dead(ctx context.Context, state txState, failed error) (store.Verdict, error) {
	cause := instead(state.dead, failed)
	if state.lost {
		cause = fmt.Errorf("%w: %w", store.ErrInterrupted, cause)
	}
	if !state.touched {
		return store.NotCommitted, cause
	}
	return t.gone(ctx, state, cause)
}

// gone returns the verdict of a transaction that the handler has ended. If it was rolled
// back, later statements of the handler may have been committed one by one, unless it
// was ended by a method of the *sql.Tx only.
func (t *transaction) gone(ctx context.Context, state txState, failed error) (store.Verdict, error) {
	verdict := store.NotCommitted
	if state.touched || !state.ended {
		if verdict = t.find(ctx); verdict == store.NotCommitted {
			verdict = store.Unknown
		}
	}
	if failed == nil {
		return verdict, ErrEnded
	}
	return verdict, fmt.Errorf("%w: %w", ErrEnded, failed)
}

// find finds out how a transaction ended. If its mark exists, it was committed, because
// the last change removes the mark. While the server has not ended it, the mark is
// locked.
func (t *transaction) find(ctx context.Context) store.Verdict {
	ctx, cancel := context.WithTimeout(ctx, t.store.commitBound)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		marks, err := t.store.ids(ctx, sqlMarked, t.guards[0])
		switch {
		case err == nil && len(marks) == 0:
			return store.NotCommitted
		case err == nil:
			_, _ = t.store.own.ExecContext(ctx, sqlUnmark+list(len(t.guards)), t.guards...) // they only take room
			return store.Committed
		case !isBusy(err) && !isInterrupted(err) && codeOf(err) != 0, errors.Is(rest(ctx, pause), ctx.Err()) && ctx.Err() != nil:
			return store.Unknown
		}
	}
}
