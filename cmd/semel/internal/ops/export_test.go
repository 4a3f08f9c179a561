package ops

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// PurgeReportEvery is the number of records between two progress lines of
// purge.
const PurgeReportEvery = purgeReportEvery

// Remove is the core of purge.
func Remove(ctx context.Context, s store.Store, limit int, progress io.Writer) (int, error) {
	return remove(ctx, s, limit, progress)
}

// Settle is the core of journal settle, with the test's engine.
func Settle(ctx context.Context, out io.Writer, path string, engine semel.Runner, records store.Store) error {
	c := new(cobra.Command)
	c.SetOut(out)
	s, err := newSettler(c, []string{path}, false)
	if err != nil {
		return err
	}
	db := &database{records: records, engine: func(semel.Options) (semel.Runner, error) { return engine, nil }}
	return s.run(ctx, db)
}

// Views are the values that the commands print with --json.
func Views() []any {
	return []any{
		migrated{},
		recordView{},
		selectedCountView{},
		detailView{},
		bodyView{},
		noteView{},
		recordview.Outcome{},
		resolvedView{},
		changedView{},
		recordview.Progress{},
		recordview.Try{},
		purgedView{},
		partitionsView{},
		partitionView{},
		createdPartitionsView{},
		droppedView{},
		oldView{},
		purgeCount{},
		statsView{},
		countView{},
		outboxStatsView{},
		outboxParkedView{},
		parkedView{},
		redriveView{},
		outboxNotesView{},
		outboxNoteView{},
		entryView{},
		invalidLineView{},
		settleView{},
	}
}

// StillSelected reports whether --all with a state still selects a record that
// has another state when it is about to be changed.
func StillSelected(state string, now store.State) (bool, error) {
	f := &filterFlags{state: state}
	c := newCancelCommand()
	w, err := f.read(c.Flags(), store.Pending, store.InProgress)
	if err != nil {
		return false, err
	}
	r := &store.Record{}
	r.State = now
	return w.stillMatches(r), nil
}
