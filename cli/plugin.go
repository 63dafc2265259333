package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
)

func pluginCommand() *cli.Command {
	return &cli.Command{
		Name:        "plugin",
		Usage:       "build, check and look into modules of dataset functions",
		UsageText:   "weir plugin build | check | inspect …",
		Description: "A module is a WebAssembly file that keeps Weir's ABI, version 1.\n\nExample:\n   weir plugin build plugins/sap && weir plugin check plugins/sap.wasm",
		Subcommands: []*cli.Command{pluginBuildCommand(), pluginCheckCommand(), pluginInspectCommand()},
	}
}

func confFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "conf", Usage: "a configuration value that the module may read, `KEY=VALUE` (may be repeated)"}
}

// keyValues reads the flag's KEY=VALUE pairs.
func keyValues(c *cli.Context, flag string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, kv := range c.StringSlice(flag) {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, wrongUsage(fault.New("INVALID_ARGUMENT", "--%s %q is not KEY=VALUE", flag, kv))
		}
		pairs[k] = v
	}
	return pairs, nil
}

func readModule(path string) ([]byte, error) {
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, wrongUsage(fault.Wrap(err, "PLUGIN_NOT_FOUND", "the module cannot be read").At(fault.Where{File: path}))
	}
	return wasm, nil
}

// byteSize writes a size for a person.
func byteSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
