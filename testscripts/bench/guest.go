package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/runtime/plugin"
)

// errNoTool says that what a figure needs is not on this machine.
var errNoTool = errors.New("not installed")

// buildGo compiles a Go module as `weir plugin build` does.
func buildGo(ctx context.Context, dir, source string) ([]byte, error) {
	return buildWith(ctx, dir, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"},
		"go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", "$OUT", source)
}

// buildC compiles a C module without a library.
func buildC(ctx context.Context, dir, source string) ([]byte, error) {
	return buildWith(ctx, dir, nil, "clang", "--target=wasm32", "-O2", "-msimd128", "-mbulk-memory", "-nostdlib",
		"-Wl,--no-entry", "-o", "$OUT", source)
}

func buildWith(ctx context.Context, dir string, env []string, tool string, args ...string) ([]byte, error) {
	if _, err := exec.LookPath(tool); err != nil {
		return nil, fmt.Errorf("%s is %w", tool, errNoTool)
	}
	out := filepath.Join(dir, "module.wasm")
	for i := range args {
		if args[i] == "$OUT" {
			args[i] = out
		}
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return os.ReadFile(out)
}

// guest is a module in the runtime as the pipeline uses it: metered, with the
// default limits.
type guest struct {
	engine *plugin.Engine
	*plugin.Module
}

func loadGuest(ctx context.Context, dir string, wasm []byte, name string) (guest, error) {
	e, err := plugin.NewEngine(ctx, plugin.Options{CacheDir: filepath.Join(dir, "cache")})
	if err != nil {
		return guest{}, err
	}
	m, err := e.Load(ctx, wasm, plugin.Config{Name: name})
	if err != nil {
		return guest{}, errors.Join(err, e.Close(ctx))
	}
	return guest{e, m}, nil
}

func (g guest) close(ctx context.Context) error {
	return errors.Join(g.Module.Close(ctx), g.engine.Close(ctx))
}

// call runs a function over batches to its end. With versions of its inputs, a
// function that declared reuse runs in the instance that it ran in before.
func (g guest) call(ctx context.Context, function string, versions []string, inputs ...batches) error {
	readers := make([]array.RecordReader, len(inputs))
	for i, in := range inputs {
		r, err := in.reader()
		if err != nil {
			return err
		}
		defer r.Release()
		readers[i] = r
	}
	out, err := g.Map(ctx, plugin.Call{Function: function, Inputs: readers, Versions: versions})
	if err != nil {
		return err
	}
	defer out.Release()
	return drain(out, inputs[0].rows())
}

// drain reads all rows and compares their number.
func drain(r array.RecordReader, want int64) error {
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if r.Err() == nil && rows != want {
		return fmt.Errorf("%d rows came out of %d", rows, want)
	}
	return r.Err()
}

// batches is an input that is there before the clock starts.
type batches struct {
	schema *arrow.Schema
	list   []arrow.RecordBatch
}

func (b batches) reader() (array.RecordReader, error) { return array.NewRecordReader(b.schema, b.list) }

func (b batches) rows() (n int64) {
	for _, rec := range b.list {
		n += rec.NumRows()
	}
	return n
}

// schemaOf makes a schema of Spark's spelling.
func schemaOf(ddl string) (*arrow.Schema, error) {
	fields, err := coltype.ParseDDL(ddl)
	if err != nil {
		return nil, err
	}
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = f.Arrow()
	}
	return arrow.NewSchema(out, nil), nil
}
