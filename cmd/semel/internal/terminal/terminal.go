// Package terminal is how commands speak: to people, or as JSON to programs.
package terminal

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// FlagJSON is the flag, common to all commands, that asks for JSON.
const FlagJSON = "json"

// AddFlags gives root the flags that all commands have.
func AddFlags(root *cobra.Command) {
	root.PersistentFlags().Bool(FlagJSON, false, "write JSON for programs instead of text for people")
}

// WantsJSON reports whether c is to write JSON.
func WantsJSON(c *cobra.Command) bool {
	wants, err := c.Flags().GetBool(FlagJSON)
	return err == nil && wants
}

// WriteJSON writes v to c's output, indented.
func WriteJSON(c *cobra.Command, v any) error {
	e := json.NewEncoder(c.OutOrStdout())
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
