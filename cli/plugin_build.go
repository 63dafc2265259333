package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
)

func pluginBuildCommand() *cli.Command {
	return &cli.Command{
		Name:      "build",
		Usage:     "build a plugin written in Go",
		UsageText: "weir plugin build DIR [-o FILE] [--output text|json]",
		Description: "DIR holds a package main that uses the SDK. Without -o the module is written beside DIR, as DIR.wasm.\n" +
			"The build reads no registry when the SDK is replaced by a folder, as weir init does.\n" +
			"\nExample:\n   weir plugin build plugins/sap -o build/sap.wasm",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "o", Usage: "the module to write, `FILE`"},
			outputFlag("text", "json"),
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, "the folder of a plugin")
			if err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			dir := filepath.Clean(args[0])
			out := c.String("o")
			if out == "" {
				if out, err = moduleBeside(dir); err != nil {
					return err
				}
			}
			built, err := buildPlugin(c.Context, dir, out)
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(c.App.Writer, built)
			}
			_, err = fmt.Fprintf(c.App.Writer, "%s  %s  sha256 %s\n", built.Path, byteSize(built.Bytes), built.SHA256)
			return err
		},
	}
}

// moduleBeside names the module of a folder: the folder's path and .wasm.
func moduleBeside(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if dir == "." || dir == ".." || filepath.Dir(abs) == abs {
		return filepath.Join(dir, filepath.Base(abs)+".wasm"), nil
	}
	return dir + ".wasm", nil
}

type builtModule struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// buildPlugin builds the package main in dir to out with the Go tool.
func buildPlugin(ctx context.Context, dir, out string) (*builtModule, error) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil, wrongUsage(fault.New("PLUGIN_NOT_FOUND", "there is no folder %s", dir).
			WithHint("Name the folder that holds the plugin's main.go"))
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return nil, fault.New("TOOLCHAIN_MISSING", "the Go tool is not on the PATH").
			WithHint("Install Go 1.26 or newer to build plugins written in Go")
	}
	target, err := filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return nil, fault.Wrap(err, "WRITE_FAILED", "the module cannot be written")
	}
	// Beside the target, so that a failed build leaves the old module and a
	// running pipeline never sees half of a new one.
	temp := target + ".building"
	defer os.Remove(temp)
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", temp, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &messages, &messages
	if err := cmd.Run(); err != nil {
		return nil, fault.Wrap(err, "PLUGIN_BUILD_FAILED", "%s does not build:\n%s", dir, strings.TrimSpace(messages.String()))
	}
	wasm, err := os.ReadFile(temp)
	if err != nil {
		return nil, fault.New("PLUGIN_BUILD_FAILED", "%s gave no module", dir).WithHint("It must be package main")
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		// go build writes an archive for a package that is not main.
		return nil, fault.New("PLUGIN_BUILD_FAILED", "%s gave no module", dir).WithHint("It must be package main")
	}
	if err := os.Rename(temp, target); err != nil {
		return nil, fault.Wrap(err, "WRITE_FAILED", "the module cannot be written")
	}
	sum := sha256.Sum256(wasm)
	return &builtModule{Path: out, Bytes: int64(len(wasm)), SHA256: hex.EncodeToString(sum[:])}, nil
}
