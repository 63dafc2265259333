package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/runtime/plugin"
)

func pluginInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "print a module's manifest, hash, imports, size and limits",
		UsageText: "weir plugin inspect FILE [--conf KEY=VALUE] [--output text|json]",
		Description: "The manifest is what the module says of itself under the configuration given.\n" +
			"\nExample:\n   weir plugin inspect plugins/sap.wasm --output json",
		Flags: []cli.Flag{confFlag(), outputFlag("text", "json")},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, "the file of a module")
			if err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			conf, err := keyValues(c, "conf")
			if err != nil {
				return err
			}
			wasm, err := readModule(args[0])
			if err != nil {
				return err
			}
			return withModule(c.Context, args[0], wasm, conf, func(m *plugin.Module) error {
				imports, err := wasmImports(wasm)
				if err != nil {
					return fault.Wrap(err, "PLUGIN_INVALID_MODULE", "the import section cannot be read").At(fault.Where{File: args[0]})
				}
				line := moduleLine{
					Path: args[0], Bytes: int64(len(wasm)), SHA256: m.SHA256(),
					Imports: imports, Limits: limitsOf(m.Limits()), Manifest: m.Manifest(),
				}
				if format == "json" {
					return writeJSON(c.App.Writer, line)
				}
				return writeModule(c.App.Writer, line, m.Limits())
			})
		},
	}
}

// moduleLine is the line of `weir plugin inspect --output json`.
type moduleLine struct {
	Path     string           `json:"path"`
	Bytes    int64            `json:"bytes"`
	SHA256   string           `json:"sha256"`
	Imports  []string         `json:"imports"`
	Limits   map[string]int64 `json:"limits"`
	Manifest *abi.Manifest    `json:"manifest"`
}

func limitsOf(l plugin.Limits) map[string]int64 {
	out := map[string]int64{}
	for _, v := range l.List() {
		out[v.Name] = v.Value
	}
	return out
}

// withModule loads a module into an engine of its own, without any cache: what
// it says is what it says now.
func withModule(ctx context.Context, name string, wasm []byte, conf map[string]string, use func(*plugin.Module) error) error {
	engine, err := plugin.NewEngine(ctx, plugin.Options{})
	if err != nil {
		return err
	}
	defer engine.Close(context.WithoutCancel(ctx))
	m, err := engine.Load(ctx, wasm, plugin.Config{Name: name, Conf: conf})
	if err != nil {
		return err
	}
	defer m.Close(context.WithoutCancel(ctx))
	return use(m)
}

func writeModule(w io.Writer, l moduleLine, limits plugin.Limits) error {
	manifest, err := json.MarshalIndent(l.Manifest, "", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "file      %s\nsize      %s (%d bytes)\nsha256    %s\n", l.Path, byteSize(l.Bytes), l.Bytes, l.SHA256)
	fmt.Fprintf(&b, "module    %s %s (abi %d, sdk %s)\n", l.Manifest.Module, l.Manifest.Version, l.Manifest.ABI, l.Manifest.SDK)
	for i, name := range l.Imports {
		label := "imports"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "%-9s %s\n", label, printable(name))
	}
	label := "limits"
	for _, v := range limits.List() {
		fmt.Fprintf(&b, "%-9s %s = %s\n", label, v.Name, v.Text)
		label = ""
	}
	fmt.Fprintf(&b, "manifest\n%s\n", manifest)
	_, err = io.WriteString(w, b.String())
	return err
}
