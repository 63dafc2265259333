package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/runtime/plugin"
)

// maxModuleBytes bounds a module before the runtime, which has its own bound, sees it.
const maxModuleBytes = 256 << 20

// module is one loaded plugin.
type module struct {
	ref      PluginRef
	name     string // as messages and the graph call it
	loaded   *plugin.Module
	manifest *abi.Manifest
}

// loadModule reads a module, checks its pin and asks it for its manifest.
func loadModule(ctx context.Context, engine *plugin.Engine, s *Spec, ref PluginRef) (*module, error) {
	place := fault.Where{File: s.Path, Line: int64(ref.Line)}
	info, err := os.Stat(ref.Path)
	if err != nil {
		return nil, fault.Wrap(err, "PLUGIN_NOT_FOUND", "the module cannot be read").At(place).
			WithHint("Build it with `weir plugin build`, or correct the path")
	}
	if info.Size() > maxModuleBytes {
		return nil, fault.New("PLUGIN_LIMIT_EXCEEDED", "the module %s has %d bytes; at most %d are read", ref.Path, info.Size(), maxModuleBytes).At(place)
	}
	wasm, err := os.ReadFile(ref.Path)
	if err != nil {
		return nil, fault.Wrap(err, "PLUGIN_NOT_FOUND", "the module cannot be read").At(place)
	}
	if ref.SHA256 != "" {
		sum := sha256.Sum256(wasm)
		if got := hex.EncodeToString(sum[:]); got != ref.SHA256 {
			return nil, fault.New("PLUGIN_HASH_MISMATCH", "the module %s has sha256 %s, the spec pins %s", ref.Path, got, ref.SHA256).At(place).
				WithHint("If the change is wanted, pin the new hash")
		}
	}
	name := strings.TrimSuffix(filepath.Base(ref.Path), filepath.Ext(ref.Path))
	conf, err := s.granted(ref.Conf)
	if err != nil {
		return nil, fault.Place(err, "SECRET_NOT_FOUND", place)
	}
	loaded, err := engine.Load(ctx, wasm, plugin.Config{Name: name, Conf: conf, Limits: ref.Limits})
	if err != nil {
		return nil, fault.Wrap(err, codeOr(err, "PLUGIN_INVALID_MODULE"), "the module %s cannot be loaded", ref.Path).At(place)
	}
	return &module{ref: ref, name: name, loaded: loaded, manifest: loaded.Manifest()}, nil
}

// codeOr gives the code of an error, or another when it has none.
func codeOr(err error, code string) string {
	if c := fault.CodeOf(err); c != "" {
		return c
	}
	return code
}
