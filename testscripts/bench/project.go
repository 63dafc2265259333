package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-data/weir/host/pipeline"
)

// project is a pipeline of one bronze table below a folder.
type project struct{ dir string }

// newProject writes the pipeline: a SELECT over read_files of the landing
// folder with the options given.
func newProject(dir, landing, options string) (project, error) {
	p := project{dir}
	spec := "name: bench\ncatalog: dev\nschema: bronze\nstorage: ./lake\nlibraries:\n  - glob: {include: bronze.sql}\n"
	sql := fmt.Sprintf("CREATE OR REFRESH STREAMING TABLE bronze.orders AS SELECT * FROM STREAM read_files('%s', %s);\n", landing, options)
	for name, text := range map[string]string{"weir.yaml": spec, "bronze.sql": sql} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return p, err
		}
	}
	return p, nil
}

// forget removes what earlier runs wrote.
func (p project) forget() error { return os.RemoveAll(filepath.Join(p.dir, "lake")) }

// update runs one update.
func (p project) update(ctx context.Context, opt pipeline.RunOptions) (*pipeline.Result, error) {
	spec, err := pipeline.LoadSpec(filepath.Join(p.dir, "weir.yaml"), nil)
	if err != nil {
		return nil, err
	}
	opened, err := pipeline.Open(ctx, spec, pipeline.Options{CacheDir: filepath.Join(p.dir, "cache")})
	if err != nil {
		return nil, err
	}
	defer opened.Close(ctx)
	result, err := opened.Run(ctx, opt)
	if err != nil {
		return nil, err
	}
	for _, f := range result.Flows {
		if f.Err != nil {
			return nil, f.Err
		}
	}
	return result, nil
}

// run runs one update and checks the number of rows it writes.
func (p project) run(ctx context.Context, wantRows int64) error {
	result, err := p.update(ctx, pipeline.RunOptions{})
	if err != nil {
		return err
	}
	for _, f := range result.Flows {
		if f.RowsWritten != wantRows {
			return fmt.Errorf("%s has %d rows, not %d", f.Dataset, f.RowsWritten, wantRows)
		}
	}
	return nil
}
