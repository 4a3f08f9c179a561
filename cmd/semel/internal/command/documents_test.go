package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/internal/repository"
)

// commandLine matches a call of the program: in backticks, at the start of a
// line, or after a pipe.
var commandLine = regexp.MustCompile("(?m)(?:`|^|\\| )semel ([a-z][^`|#\\n]*)")

// flagOf matches the flags of a command line.
var flagOf = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)

// TestDocumentedCommandLinesExist: every command line in a document names an
// existing command and existing flags.
func TestDocumentedCommandLinesExist(t *testing.T) {
	t.Parallel()
	root := command.New()
	root.InitDefaultCompletionCmd() // Execute does this
	root.InitDefaultHelpCmd()
	seen := 0
	for name, text := range markdown(t) {
		for _, m := range commandLine.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			seen++
			c, rest, err := root.Find(strings.Fields(m[1]))
			if err != nil || c == root || c.HasSubCommands() && len(rest) > 0 && c.ValidateArgs(rest) != nil {
				t.Errorf("%s shows \"semel %s\", but there is no such command", name, m[1])
				continue
			}
			for _, flag := range flagOf.FindAllStringSubmatch(m[1], -1) {
				if !hasFlag(c, flag[1]) {
					t.Errorf("%s shows \"semel %s\", but %s has no flag --%s", name, m[1], c.CommandPath(), flag[1])
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d command lines were found: this test looks in the wrong place", seen)
	}
}

func hasFlag(c *cobra.Command, name string) bool {
	c.InitDefaultHelpFlag()
	return c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
}

// markdown returns the text of the repository's Markdown files, except the
// changelog, which names renamed and removed flags.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, name := range repository.Files(t, "*.md") {
		if name != "CHANGELOG.md" {
			texts[name] = repository.Read(t, name)
		}
	}
	return texts
}
