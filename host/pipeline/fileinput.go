package pipeline

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/stream"
)

// fileInput is files that a batch query reads whole.
type fileInput struct {
	key     string
	in      *input
	files   *stream.FileInput
	schemas schemaOf
}

// fileInput adds files to what the chain reads. They are known by their path,
// and by a number more when two sources of one query share it.
func (c *chain) fileInput(in *input, src *ingest.Source, schemas schemaOf) *fileInput {
	key := in.files.path
	for n := 2; ; n++ {
		have := c.files[key]
		if have == nil {
			break
		}
		if have.in == in {
			return have
		}
		key = fmt.Sprintf("%s (%d)", in.files.path, n)
	}
	f := &fileInput{key: key, in: in, files: &stream.FileInput{Source: src}, schemas: schemas}
	c.files[key] = f
	return f
}

// schema gives the columns that the refresh reads; before there is one, those
// that the files have now.
func (f *fileInput) schema(ctx context.Context) (*arrow.Schema, error) {
	if s := f.files.Schema(); s != nil {
		return s, nil
	}
	return f.schemas(ctx, f.in)
}

func (f *fileInput) open(ctx context.Context, t *stream.Task) (array.RecordReader, error) {
	return t.OpenFiles(ctx, f.key)
}

// version says nothing: a function's instance may not know files already.
func (f *fileInput) version(*stream.Task) string { return "" }

// fileSchema gives the columns of the files there are now.
func (p *Pipeline) fileSchema(ctx context.Context, in *input) (*arrow.Schema, error) {
	src := p.sources[in]
	schema, err := inferred(ctx, src)
	if err != nil {
		return nil, err
	}
	return src.ArrowSchema(schema), nil
}

// inferred gives the schema that a first look at a source's files gives.
func inferred(ctx context.Context, src *ingest.Source) (*ingest.Schema, error) {
	var sample []ingest.File
	for f, err := range src.List(ctx) {
		if err != nil {
			return nil, err
		}
		if sample = append(sample, f); len(sample) == maxSampleFiles {
			break
		}
	}
	return src.Infer(ctx, sample)
}
