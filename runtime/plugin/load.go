package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/cache"
)

// Config is what one module of a pipeline is loaded with.
type Config struct {
	// Name is what messages call the module.
	Name string
	// Conf is the configuration the module may read, already narrowed to its grant.
	Conf map[string]string
	// Limits of this module; what is zero is the engine's. See [ParseLimits].
	Limits Limits
}

// Module is a loaded module with its configuration. It may be used by many
// goroutines at once.
type Module struct {
	name     string
	hash     string
	conf     map[string]string
	unit     *unit
	limits   Limits
	manifest *abi.Manifest

	mu      sync.Mutex
	schemas map[string][]*arrow.Schema // learned outputs, by function and input schemas
	closed  bool
	gone    bool // under the lock of engine.idle
}

// Load checks a module and reads its manifest. What it needs compiled it
// compiles once, however many load it at the same time; with a manifest in the
// cache it compiles nothing. The bytes are kept; the caller does not change them.
func (e *Engine) Load(ctx context.Context, wasm []byte, cfg Config) (*Module, error) {
	m := &Module{name: cfg.Name, conf: maps.Clone(cfg.Conf), limits: cfg.Limits.over(e.limits).withDefaults(), schemas: map[string][]*arrow.Schema{}}
	if size := int64(len(wasm)); size > m.limits.ModuleBytes {
		return nil, m.named(overLimit("module_bytes", m.limits.ModuleBytes, fmt.Sprintf("a module of %d bytes", size)), "")
	}
	info, err := readSections(wasm, m.limits)
	if err == nil {
		err = info.verify(m.limits)
	}
	if err != nil {
		return nil, m.named(err, "")
	}
	sum := sha256.Sum256(wasm)
	m.hash = hex.EncodeToString(sum[:])
	m.unit = e.unit(m.hash, wasm, e.meterOf(m.limits))
	if err := m.describe(ctx); err != nil {
		_ = m.unit.release(ctx)
		return nil, m.named(err, "")
	}
	return m, nil
}

// Manifest is what the module says of itself. The caller does not change it.
func (m *Module) Manifest() *abi.Manifest { return m.manifest }

// Limits are those the module runs under.
func (m *Module) Limits() Limits { return m.limits }

// SHA256 is the hash of the module's bytes, in hex.
func (m *Module) SHA256() string { return m.hash }

// Close gives up the module. Readers that are still open may be read to their end.
func (m *Module) Close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.unit.engine.idle.purge(m)
	return m.unit.release(ctx)
}

// describe reads the manifest from the cache or from the module.
func (m *Module) describe(ctx context.Context) error {
	disk := m.unit.engine.disk
	key := ""
	if disk != nil {
		parts := []string{m.unit.key, fmt.Sprint(abi.Current)}
		for _, k := range slices.Sorted(maps.Keys(m.conf)) {
			parts = append(parts, k, m.conf[k])
		}
		key = cache.Key(parts...)
		if text, ok := disk.Manifest(key); ok {
			if manifest, err := abi.ParseManifest(text); err == nil {
				m.manifest = manifest
				return nil
			}
		}
	}
	text, err := m.askManifest(ctx)
	if err != nil {
		return err
	}
	if m.manifest, err = abi.ParseManifest(text); err != nil {
		var e *abi.Error
		if errors.As(err, &e) {
			return because(err, e.Code, "its manifest is refused")
		}
		return because(err, CodeManifest, "its manifest is refused")
	}
	if disk != nil {
		_ = disk.PutManifest(key, text) // a full disk costs the next start its time, nothing else
	}
	return nil
}

func (m *Module) askManifest(ctx context.Context) ([]byte, error) {
	if err := m.unit.compile(ctx); err != nil {
		return nil, err
	}
	in, err := m.unit.instantiate(ctx, m.conf, m.limits)
	if err != nil {
		return nil, err
	}
	defer in.close()
	in.listen(nil)
	in.describing = true
	in.use(setupAllowance(m.limits))
	in.random = newRandom("describe", initSeed)
	if err := in.invoke(abi.ExportDescribe); err != nil {
		var e *Error
		if errors.As(err, &e) && e.Code == CodeFailed {
			return nil, errorf(CodeManifest, "%s failed: %s", abi.ExportDescribe, e.Message)
		}
		return nil, err
	}
	if in.result == nil {
		return nil, errorf(CodeManifest, "%s wrote no manifest", abi.ExportDescribe)
	}
	return in.result, nil
}

// named fills in module and function where an error lacks them, and gives an
// error without a code of its own one.
func (m *Module) named(err error, function string) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	if named.Module == "" {
		named.Module = m.name
	}
	if named.Function == "" {
		named.Function = function
	}
	return &named
}
