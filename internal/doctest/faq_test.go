package doctest_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/semelgo/semel"
)

// TestTextsOfErrorsInFAQ: a reader finds an error by its text, so the texts are the real ones.
func TestTextsOfErrorsInFAQ(t *testing.T) {
	var texts []string
	for _, m := range regexp.MustCompile("(?m)^### `(semel: [^`]+)`$").FindAllStringSubmatch(read(t, "docs/faq.md"), -1) {
		texts = append(texts, m[1])
	}
	for _, err := range []error{
		semel.ErrInProgress, semel.ErrMismatch, semel.ErrInDoubt, semel.ErrOutcomeUnknown,
		semel.ErrUnavailable, semel.ErrLeaseLost, semel.ErrResultUnavailable, semel.ErrInvalid,
	} {
		if !slices.Contains(texts, err.Error()) {
			t.Errorf("docs/faq.md has no heading %q", err)
		}
	}
	if len(texts) != 8 {
		t.Errorf("docs/faq.md has headings for %q", texts)
	}
}
