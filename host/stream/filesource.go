package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

// NewFileSource makes the source of a flow that ingests files. Files are taken
// in the order of their paths.
func NewFileSource(src *ingest.Source) Source { return &fileSource{src} }

type fileSource struct{ src *ingest.Source }

func (s *fileSource) kind() string { return filesKind }

// sampleFiles is how many files inference looks at, at most.
const sampleFiles = 1000

// capture lists the source and keeps what no batch names: two sorted lists,
// walked once side by side.
func (s *fileSource) capture(ctx context.Context, ck *checkpoint) (_ backlog, err error) {
	known, err := ck.known(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, known.close()) }()
	left := &fileBacklog{src: s.src, limits: s.src.Limits()}
	more, err := known.next()
	if err != nil {
		return nil, err
	}
	w := blockWriter{w: &left.packed}
	for f, err := range s.src.List(ctx) {
		if err != nil {
			return nil, err
		}
		for more {
			path, _ := known.view()
			if string(path) >= f.Path {
				break
			}
			if more, err = known.next(); err != nil {
				return nil, err
			}
		}
		if more {
			if path, _ := known.view(); string(path) == f.Path {
				continue
			}
		}
		if err := w.add(knownFile{path: f.Path, size: f.Size, mtime: f.ModTimeMicros}); err != nil {
			return nil, err
		}
		left.count.Files++
		if f.Size < 0 {
			left.count.Bytes = -1
		} else if left.count.Bytes >= 0 {
			left.count.Bytes += f.Size
		}
	}
	if err := w.end(); err != nil {
		return nil, err
	}
	left.reader = blockReader{r: bufio.NewReader(&left.packed)}
	return left, nil
}

// fileBacklog is the new files of a listing, packed, taken from the front.
type fileBacklog struct {
	src    *ingest.Source
	limits ingest.Limits
	packed bytes.Buffer
	reader blockReader
	ready  []ingest.File // taken out, looked up, and not in a batch yet
	count  Backlog
}

// lookAhead is how many files are looked up at once.
const lookAhead = 1000

// next takes files up to the limits. The limit of bytes is soft: the file that
// reaches it still belongs to the batch.
func (b *fileBacklog) next(ctx context.Context) (*sourceOffset, error) {
	off := &sourceOffset{Kind: filesKind}
	bytes := int64(0)
	for (b.limits.MaxFiles <= 0 || len(off.Files) < b.limits.MaxFiles) && (b.limits.MaxBytes <= 0 || bytes < b.limits.MaxBytes) {
		if len(b.ready) == 0 {
			if more, err := b.fill(ctx); err != nil {
				return nil, err
			} else if !more {
				break
			}
			continue
		}
		f := b.ready[0]
		b.ready = b.ready[1:]
		off.Files = append(off.Files, InputFile(f))
		bytes += max(f.Size, 0)
		b.took(1, f.Size)
	}
	if len(off.Files) == 0 {
		return nil, nil
	}
	return off, nil
}

// fill looks up the next files; those that are gone by now were never there.
func (b *fileBacklog) fill(ctx context.Context) (bool, error) {
	var found []ingest.File
	for len(found) < lookAhead {
		ok, err := b.reader.next()
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		found = append(found, ingest.File{Path: string(b.reader.path), Size: b.reader.cur.size, ModTimeMicros: b.reader.cur.mtime})
	}
	if len(found) == 0 {
		return false, nil
	}
	ready, err := b.src.Complete(ctx, found)
	if err != nil {
		return false, err
	}
	b.took(len(found)-len(ready), 0)
	b.ready = ready
	return true, nil
}

func (b *fileBacklog) took(files int, bytes int64) {
	b.count.Files -= int64(files)
	if b.count.Bytes >= 0 {
		b.count.Bytes = max(b.count.Bytes-max(bytes, 0), 0)
	}
}

func (b *fileBacklog) left() Backlog { return b.count }

// empty gives the offset of a batch that reads nothing.
func (s *fileSource) empty(context.Context, *checkpoint) (*sourceOffset, error) {
	return &sourceOffset{Kind: filesKind}, nil
}

func (s *fileSource) schema(ctx context.Context, versions *schemaVersions, batch int64, off *sourceOffset) (readSchema, error) {
	v := versions.at(batch)
	next, err := s.next(ctx, v, off)
	if err != nil {
		return readSchema{}, err
	}
	switch {
	case next == nil:
	case off == nil:
		v = next // nothing is read with it, so it is not recorded either
	default:
		if v, err = versions.record(ctx, next, batch); err != nil {
			return readSchema{}, err
		}
	}
	return readSchema{arrow: s.src.ArrowSchema(v), files: v, version: v.Version}, nil
}

// next gives the schema to take instead of the recorded one, nil to stay with
// that: the first one, or the one that the options declare by now. A schema
// that grows by itself is declared once, at its start.
func (s *fileSource) next(ctx context.Context, v *ingest.Schema, off *sourceOffset) (*ingest.Schema, error) {
	if v == nil {
		sample, err := s.sample(ctx, off)
		if err != nil {
			return nil, err
		}
		return s.src.Infer(ctx, sample)
	}
	if s.src.Evolves() || !declaredSchema(v) {
		return nil, nil
	}
	// Without files there is nothing to infer from; what comes is declared.
	now, err := s.src.Infer(ctx, nil)
	if fault.CodeOf(err) == "UNABLE_TO_INFER_SCHEMA" {
		return nil, nil // it is declared no longer; what is recorded stays
	}
	if err != nil {
		return nil, err
	}
	if !declaredSchema(now) || slices.EqualFunc(now.Fields, v.Fields, sameField) {
		return nil, nil
	}
	return now, nil
}

func declaredSchema(s *ingest.Schema) bool {
	return slices.ContainsFunc(s.Fields, func(f ingest.Field) bool { return f.Origin == ingest.Declared })
}

func sameField(a, b ingest.Field) bool {
	return a.Name == b.Name && a.Origin == b.Origin && sameType(a.Type, b.Type)
}

// sample gives the files that a first schema is made from: the first ones of
// the source, so that a small limit on batches does not narrow what is seen.
func (s *fileSource) sample(ctx context.Context, off *sourceOffset) ([]ingest.File, error) {
	var files []ingest.File
	for f, err := range s.src.List(ctx) {
		if err != nil {
			return nil, err
		}
		if files = append(files, f); len(files) == sampleFiles {
			break
		}
	}
	files, err := s.src.Complete(ctx, files)
	if err != nil || len(files) > 0 || off == nil {
		return files, err
	}
	return ingestFiles(off.Files), nil
}

func ingestFiles(files []InputFile) []ingest.File {
	out := make([]ingest.File, len(files))
	for i, f := range files {
		out[i] = ingest.File(f)
	}
	return out
}

func (s *fileSource) split(ctx context.Context, off *sourceOffset, taskBytes int64) ([]Input, error) {
	var out []Input
	for _, share := range splitBytes(len(off.Files), taskBytes, func(i int) int64 { return off.Files[i].Size }) {
		out = append(out, Input{Files: off.Files[share[0]:share[1]]})
	}
	return out, nil
}

func (s *fileSource) read(ctx context.Context, in Input, schema readSchema, with means) (sourceReader, error) {
	r, err := s.src.Read(ctx, schema.files, ingestFiles(in.Files), ingest.ReadOptions{Alloc: with.mem, Parallel: with.decoders})
	if err != nil {
		return nil, err
	}
	return &fileReader{r}, nil
}

// evolve looks at a whole batch and gives the schema with every new column of it.
func (s *fileSource) evolve(ctx context.Context, off *sourceOffset, schema readSchema, mem memory.Allocator) (*ingest.UnknownFieldError, error) {
	r, err := s.src.Read(ctx, schema.files, ingestFiles(off.Files), ingest.ReadOptions{Alloc: mem})
	if err != nil {
		return unknownField(err)
	}
	defer r.Release()
	for r.Next() {
	}
	return unknownField(r.Err())
}

// unknownField tells an error about new columns from any other.
func unknownField(err error) (*ingest.UnknownFieldError, error) {
	var unknown *ingest.UnknownFieldError
	if errors.As(err, &unknown) {
		return unknown, nil
	}
	return nil, err
}

type fileReader struct{ *ingest.Reader }

func (r *fileReader) counts() sourceCounts {
	st := r.Stats()
	c := sourceCounts{rows: st.Rows, rescued: st.Rescued, malformed: st.Malformed, dropped: st.Dropped, lost: st.Lost}
	start := int64(0)
	for _, f := range st.PerFile {
		c.starts = append(c.starts, start)
		start += f.Rows
		if s := IngestionState(f.State); s != Ingested {
			c.files = append(c.files, fileOutcome{f.Path, s})
		}
	}
	return c
}

func (r *fileReader) locate(row int64) fault.Where {
	p := r.Locate(row)
	return fault.Where{File: p.File, Line: p.Line}
}

func (r *fileReader) place(row int64) string {
	p := r.Locate(row)
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}
