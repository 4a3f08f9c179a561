package ops_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semelgo/semel/cmd/semel/internal/ops"
)

// TestDocumentNamesEverything: docs/operations.md names each command, each flag
// and each JSON field.
func TestDocumentNamesEverything(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	named := 0
	want := func(what string) {
		named++
		if !strings.Contains(text, what) {
			t.Errorf("docs/operations.md does not name %s", what)
		}
	}
	var commands func(all []*cobra.Command)
	commands = func(all []*cobra.Command) {
		for _, c := range all {
			want("`" + strings.TrimSpace("semel "+c.CommandPath()))
			c.LocalFlags().VisitAll(func(f *pflag.Flag) { want("`--" + f.Name) })
			commands(c.Commands())
		}
	}
	for _, c := range ops.NewCommands() {
		commands([]*cobra.Command{c})
	}
	for _, v := range ops.Views() {
		for f := range fieldsOf(reflect.TypeOf(v)) {
			want("`" + f + "`")
		}
	}
	if named < 60 {
		t.Errorf("%d names were checked: this test looks in the wrong place", named)
	}
}

// fieldsOf returns the names of t's fields in JSON.
func fieldsOf(t reflect.Type) map[string]bool {
	names := make(map[string]bool)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" {
			names[name] = true
		}
	}
	return names
}
