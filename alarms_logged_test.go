package semel_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// silent is an Observer that drops all events.
type silent struct{}

func (silent) Observe(context.Context, event.Event) {}

// TestAlarmsAreLoggedWithoutAnObserver: a program without an Observer still says that an
// operator must act, and nothing else.
func TestAlarmsAreLoggedWithoutAnObserver(t *testing.T) { //nolint:paralleltest // slog.Default belongs to the process
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	op := semel.Define("charge", semel.OperationOptions[string]{Policy: semel.Hold()})
	for name, test := range map[string]struct {
		observer event.Observer
		lines    int
	}{
		"none":   {nil, 1},
		"silent": {silent{}, 0},
	} {
		var out log
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		e := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Observer: test.observer}))(t)
		run := func(key string, err error) error {
			_, _, err = semel.Do(t.Context(), e, op.Call(me, key, "in"), func(context.Context) (string, error) { return "v", err })
			return err
		}
		check.NoError(t, run("succeeds", nil), "%s", name)
		check.ErrorIs(t, run("in doubt", errBoom), semel.ErrOutcomeUnknown, "%s", name)
		check.NoError(t, e.Close(t.Context()), "%s", name)
		text := out.text.String()
		check.Equal(t, strings.Count(text, "\n"), test.lines, "%s: lines of the log: %s", name, text)
		check.Equal(t, strings.Contains(text, "level=ERROR msg=semel event=in_doubt operation=charge"), test.lines > 0, "%s: an error in the log: %s", name, text)
	}
}
