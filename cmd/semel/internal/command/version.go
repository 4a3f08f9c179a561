package command

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/terminal"
)

// version is what is known of the program's build. Fields that the build did
// not record are empty.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that were not committed
	Go       string `json:"go"`
}

// NewVersionCommand returns the command that tells which build this is.
func NewVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell which build this is",
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

// buildVersion is the version of this program.
func buildVersion() version {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf reads a build's information, which may be nil.
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

// String returns v on one line.
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
