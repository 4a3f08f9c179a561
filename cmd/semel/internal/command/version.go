package command

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/terminal"
)

// version is the program's build information. Fields that the build did not
// record are empty.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built with uncommitted changes
	Go       string `json:"go"`
}

// NewVersionCommand returns the command that prints the version.
func NewVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := buildVersion()
			if terminal.WantsJSON(c) {
				return terminal.WriteJSON(c, v)
			}
			fmt.Fprintln(c.OutOrStdout(), v)
			return nil
		},
	}
}

// buildVersion returns the version of this program.
func buildVersion() version {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf reads the version from build information, which may be nil.
func versionOf(info *debug.BuildInfo) version {
	v := version{Version: "unknown"}
	if info == nil {
		return v
	}
	v.Version, v.Go = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String returns v as one line.
func (v version) String() string {
	line := "semel " + v.Version
	if v.Revision != "" {
		line += " " + v.Revision
	}
	if v.Modified {
		line += " modified"
	}
	return line + " " + v.Go
}
