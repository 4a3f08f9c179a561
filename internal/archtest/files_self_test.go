//go:build !race

package archtest_test

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
)

// TestUndocumented checks declarations with and without comments.
func TestUndocumented(t *testing.T) {
	const planted = `package p

func Bare() {}

// Said is said.
func Said() {}

func (hidden) Method() {}
func (h *Shown[T]) Method() {}

// One comment for a group.
const (
	A = 1
	B = 2
)

type (
	// Told is told.
	Told int
	Untold int
)

var Loose, Ends = 1, 2
`
	f := check.Must(parser.ParseFile(token.NewFileSet(), "planted.go", planted, parser.ParseComments))(t)
	var got []string
	for _, d := range f.Decls {
		for _, name := range undocumented(d) {
			got = append(got, name.Name)
		}
	}
	want := []string{"Bare", "Method", "Untold", "Loose", "Ends"}
	if !slices.Equal(got, want) {
		t.Errorf("undocumented names (-want +got):\n%s", cmp.Diff(want, got))
	}
}
