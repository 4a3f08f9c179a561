// Package terminal formats the output of commands, for people or as JSON for
// programs.
package terminal

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// FlagJSON is the name of the flag for JSON output, which all commands have.
const FlagJSON = "json"

// AddFlags adds the flags that all commands have to root.
func AddFlags(root *cobra.Command) {
	root.PersistentFlags().Bool(FlagJSON, false, "write JSON for programs instead of text for people")
}

// WantsJSON reports whether c must write JSON.
func WantsJSON(c *cobra.Command) bool {
	wants, err := c.Flags().GetBool(FlagJSON)
	return err == nil && wants
}

// WriteJSON writes v to c's output as indented JSON.
func WriteJSON(c *cobra.Command, v any) error {
	e := json.NewEncoder(c.OutOrStdout())
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
