package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Release is the version of the command; release builds set it with -ldflags -X.
var Release = "0.1.0-dev"

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		UsageText:   "weir version [--output text|json]",
		Description: "Example:\n   weir version --output json",
		Flags:       []cli.Flag{outputFlag("text", "json")},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c); err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(c.App.Writer, versionLine{
					Version: version(), ABI: 1, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
				})
			}
			_, err = fmt.Fprintf(c.App.Writer, "weir %s (abi 1, %s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

type versionLine struct {
	Version string `json:"version"`
	ABI     int    `json:"abi"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// version is the release and, when the build knows it, the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return Release + "+" + s.Value[:12]
		}
	}
	return Release
}
