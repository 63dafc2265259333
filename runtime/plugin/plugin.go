package plugin

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
)

// Options configures an Engine.
type Options struct {
	CacheDir string // compiled code and manifests; "" keeps nothing on disk
	Limits   Limits
}

// Config is what one module of a pipeline is loaded with.
type Config struct {
	Name string            // as messages name it
	Conf map[string]string // already narrowed to the grant
}

// Engine compiles modules and runs their functions.
type Engine struct{}

// Module is a loaded module with its configuration.
type Module struct{}

// Call is one run of a function over the inputs of one task.
type Call struct {
	Function   string
	Context    abi.CallContext
	Seed       uint64
	Inputs     []array.RecordReader
	OnRowError func(input int, row int64, code, message string) error
	OnMetric   func(name string, value float64)
	OnLog      func(level abi.LogLevel, message string)
	Carry      []string
	Mem        memory.Allocator
}

// NewEngine makes an engine.
func NewEngine(ctx context.Context, opt Options) (*Engine, error) { return &Engine{}, nil }

// Close releases everything.
func (e *Engine) Close(ctx context.Context) error { return nil }

// Load compiles a module and reads its manifest.
func (e *Engine) Load(ctx context.Context, wasm []byte, cfg Config) (*Module, error) {
	return nil, errorf(CodeNotSupported, "the plugin runtime is being written")
}

// Manifest is what the module says of itself.
func (m *Module) Manifest() *abi.Manifest { return nil }

// SHA256 is the hash of the module's bytes, in hex.
func (m *Module) SHA256() string { return "" }

// Close releases the module.
func (m *Module) Close(ctx context.Context) error { return nil }

// Map runs a function of kind map.
func (m *Module) Map(ctx context.Context, call Call) (array.RecordReader, error) {
	return nil, errorf(CodeNotSupported, "the plugin runtime is being written")
}

// Schema gives the schema of a function's output.
func (m *Module) Schema(ctx context.Context, function string, inputs []*arrow.Schema) (*arrow.Schema, error) {
	return nil, errorf(CodeNotSupported, "the plugin runtime is being written")
}
