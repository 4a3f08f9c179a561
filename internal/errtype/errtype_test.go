package errtype_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/semelgo/semel/internal/errtype"
)

func TestFind(t *testing.T) {
	deep := &fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}
	err := errors.Join(errors.New("first"), fmt.Errorf("second: %w", deep))
	if got, ok := errtype.Find[*fs.PathError](err); !ok || got != deep {
		t.Errorf("Find = %v, %v", got, ok)
	}
	if got, ok := errtype.Find[interface {
		error
		Timeout() bool
	}](err); !ok || got != deep {
		t.Errorf("Find of an interface = %v, %v", got, ok)
	}
	for _, err := range []error{nil, errors.New("other")} {
		if got, ok := errtype.Find[*fs.PathError](err); ok || got != nil {
			t.Errorf("Find in %v = %v, %v", err, got, ok)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = errtype.Find[*fs.PathError](nil) }); n != 0 {
		t.Errorf("Find without an error allocates %v times", n)
	}
}

// codeError has its code in a field only.
type codeError struct {
	Number uint16
	Code   int
	Other  string
}

func (codeError) Error() string { return "" }

// embedding has the field through a nil pointer.
type embedding struct{ *codeError }

func (embedding) Error() string { return "" }

func TestField(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("other"), 0},
		{codeError{Code: 7}, 7},
		{fmt.Errorf("wrapped: %w", &codeError{Number: 1062, Code: 7}), 1062},
		{codeError{Other: "9"}, 0},
		{embedding{}, 0},
	} {
		if got := errtype.Field(test.err, "Number", "Code", "Other"); got != test.want {
			t.Errorf("Field of %#v = %d, want %d", test.err, got, test.want)
		}
	}
}
