package ingest

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Kind is the spelling of a file source.
type Kind int

// The two spellings: in CloudFiles the options of Auto Loader carry the
// prefix "cloudFiles.", in ReadFiles they do not.
const (
	CloudFiles Kind = iota
	ReadFiles
)

// Env is what a source needs from outside.
type Env struct {
	// Open opens a folder by its absolute path or URI. Nil opens local folders,
	// and refuses one that does not exist.
	Open func(root string) (storage.Store, error)
	// Dir is where relative paths start; empty is the working directory.
	Dir string
}

// Source is a parsed file source; its methods may be called concurrently.
type Source struct {
}

// File is one discovered file. Path is absolute, or a URI. Size is -1 and
// ModTimeMicros 0 until Complete when List had no need to look at the file.
type File struct {
	Path          string
	Size          int64
	ModTimeMicros int64
}

// Limits bounds a micro-batch; MaxBytes 0 is no bound.
type Limits struct {
	MaxFiles int
	MaxBytes int64
}

// Parse checks path and options of a source without reading anything.
func Parse(kind Kind, path string, options map[string]string, env Env) (*Source, error) {
	return nil, fault.New("NOT_SUPPORTED", "file sources")
}

// List discovers the files, ascending by Path.
func (s *Source) List(ctx context.Context) iter.Seq2[File, error] { return nil }

// Complete looks up size and time of the files that lack them.
func (s *Source) Complete(ctx context.Context, files []File) ([]File, error) { return nil, nil }

// Limits gives the bounds of a micro-batch.
func (s *Source) Limits() Limits { return Limits{} }

// Warnings tells what the user should know about the options.
func (s *Source) Warnings() []string { return nil }

// Infer makes the schema from the first files of the source, or gives the declared one.
func (s *Source) Infer(ctx context.Context, files []File) (*Schema, error) { return nil, nil }

// ArrowSchema gives the columns Read delivers: data, partitions, rescued data, _metadata, __weir_row.
func (s *Source) ArrowSchema(schema *Schema) *arrow.Schema { return nil }

// Read decodes the files. The caller releases the reader.
func (s *Source) Read(ctx context.Context, schema *Schema, files []File, opt ReadOptions) (*Reader, error) {
	return nil, nil
}
