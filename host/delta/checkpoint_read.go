package delta

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/file"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const sidecarFolder = logFolder + "/_sidecars/"

// checkpointBatch is how many actions are put into Arrow arrays at once.
const checkpointBatch = 16 << 10

// wholeCheckpoint is the size up to which a checkpoint file is read at once: its columns are many and small.
const wholeCheckpoint = 16 << 20

// readCheckpoint takes the state that a checkpoint holds into r.
func (t *Table) readCheckpoint(ctx context.Context, r *replay, cp checkpointFiles) error {
	r.s.version = cp.version
	uris := make([]string, len(cp.names))
	for i, name := range cp.names {
		uris[i] = escapePath(name)
	}
	top, err := t.readCheckpointFiles(ctx, r, uris)
	if err != nil {
		return err
	}
	var sidecars []sidecar
	var beside []string
	for _, c := range top {
		for _, s := range c.actions.sidecars {
			sidecars, beside = append(sidecars, s), append(beside, s.uri())
		}
	}
	contents, err := t.readCheckpointFiles(ctx, r, beside)
	if err != nil {
		return err
	}
	if r.s.sidecars, err = sidecarsOf(sidecars, contents); err != nil {
		return err
	}
	if r.s.protocol == nil || r.s.metadata == nil {
		return checkpointError(fault.New("DELTA_INVALID_CHECKPOINT", "it has no protocol or no metaData action"), cp.names[0])
	}
	return nil
}

func checkpointError(err error, name string) error {
	return fault.Place(err, "DELTA_INVALID_CHECKPOINT", fault.Where{File: name})
}

// readCheckpointFiles reads files of a checkpoint, some at once, and takes them into r in their order.
func (t *Table) readCheckpointFiles(ctx context.Context, r *replay, uris []string) (all []*checkpointContent, err error) {
	ahead := runtime.GOMAXPROCS(0)
	for len(uris) > 0 {
		now := uris[:min(ahead, len(uris))]
		uris = uris[len(now):]
		contents := make([]*checkpointContent, len(now))
		g, ctx := errgroup.WithContext(ctx)
		for i, uri := range now {
			g.Go(func() (err error) {
				contents[i], err = t.readCheckpointFile(ctx, uri)
				if err != nil {
					err = checkpointError(err, uri)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for i, c := range contents {
			if err := r.takeCheckpoint(c); err != nil {
				return nil, checkpointError(err, now[i])
			}
		}
		all = append(all, contents...)
	}
	return all, nil
}

// checkpointContent is what one file of a checkpoint holds.
type checkpointContent struct {
	actions *commitActions
	adds    []*logicalFiles[AddFile]
	removes []*logicalFiles[RemoveFile]
}

// takeCheckpoint takes the content of a checkpoint's file into the snapshot.
func (r *replay) takeCheckpoint(c *checkpointContent) error {
	for _, l := range c.removes {
		for i, key := range l.keys {
			r.s.tombs.set(key, &l.files[i])
		}
	}
	for _, l := range c.adds {
		r.s.files.reserve(len(l.keys))
		for i, key := range l.keys {
			r.s.files.set(key, &l.files[i])
		}
	}
	return r.apply(c.actions, r.s.version)
}

func (t *Table) readCheckpointFile(ctx context.Context, uri string) (*checkpointContent, error) {
	actions, pf, err := t.openCheckpoint(ctx, uri, wholeCheckpoint)
	if err != nil || pf == nil {
		return &checkpointContent{actions: actions}, err
	}
	c, err := t.decodeCheckpoint(ctx, pf.reader, pf.object.Size())
	return c, errors.Join(err, pf.close())
}

// openCheckpoint opens a Parquet file of a checkpoint, reading it at once up to a size, or reads a JSON one.
func (t *Table) openCheckpoint(ctx context.Context, uri string, whole int64) (*commitActions, *parquetFile, error) {
	o, err := t.openFile(ctx, uri)
	if err != nil {
		return nil, nil, err
	}
	json := strings.HasSuffix(uri, ".json")
	if json || o.Size() <= whole {
		data := make([]byte, o.Size())
		_, err := io.ReadFull(o, data)
		if err = errors.Join(err, o.Close()); err != nil {
			return nil, nil, fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "cannot read it")
		}
		if json {
			actions, err := decodeActions(data)
			return actions, nil, err
		}
		o = &wholeObject{bytes.NewReader(data), o}
	}
	pq, err := t.newParquetReader(o)
	if err != nil {
		return nil, nil, fault.Wrap(errors.Join(err, o.Close()), "DELTA_INVALID_CHECKPOINT", "it is no readable Parquet file")
	}
	return nil, &parquetFile{o, pq}, nil
}

// sidecarsIn gives the sidecars that a file of a checkpoint names, and reads nothing else of it.
func (t *Table) sidecarsIn(ctx context.Context, name string) (sidecars []sidecar, err error) {
	defer guard(&err, "DELTA_INVALID_CHECKPOINT", "the checkpoint")
	actions, pf, err := t.openCheckpoint(ctx, escapePath(name), 0)
	if err != nil {
		return nil, err
	}
	if pf == nil {
		return actions.sidecars, nil
	}
	defer func() { err = errors.Join(err, pf.close()) }()
	out := &commitActions{}
	columns, budget := columnPaths(pf.reader), newReadBudget(pf.object.Size())
	for i := range pf.reader.NumRowGroups() {
		part := &commitActions{}
		if err := (&checkpointGroup{t, pf.reader, i, columns, budget}).sidecars(part); err != nil {
			return nil, err
		}
		out.sidecars = append(out.sidecars, part.sidecars...)
	}
	return out.sidecars, nil
}

// wholeObject is an object whose bytes were read.
type wholeObject struct {
	*bytes.Reader
	storage.Object
}

func (o *wholeObject) Read(p []byte) (int, error)              { return o.Reader.Read(p) }
func (o *wholeObject) ReadAt(p []byte, off int64) (int, error) { return o.Reader.ReadAt(p, off) }
func (o *wholeObject) Size() int64                             { return o.Reader.Size() }
func (o *wholeObject) Close() error                            { return nil }

// decodeCheckpoint reads the actions of one file, its row groups at once.
func (t *Table) decodeCheckpoint(ctx context.Context, pq *file.Reader, size int64) (c *checkpointContent, err error) {
	defer guard(&err, "DELTA_INVALID_CHECKPOINT", "the checkpoint")
	groups := pq.NumRowGroups()
	c = &checkpointContent{
		actions: &commitActions{}, adds: make([]*logicalFiles[AddFile], groups), removes: make([]*logicalFiles[RemoveFile], groups),
	}
	columns, budget := columnPaths(pq), newReadBudget(size)
	small := make([]*commitActions, groups)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range groups {
		g.Go(func() (err error) {
			defer guard(&err, "DELTA_INVALID_CHECKPOINT", "the checkpoint")
			if err := ctx.Err(); err != nil {
				return err
			}
			rg := &checkpointGroup{t, pq, i, columns, budget}
			if c.adds[i], err = rg.adds(ctx); err != nil {
				return err
			}
			if c.removes[i], err = rg.removes(); err != nil {
				return err
			}
			small[i], err = rg.actions()
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, a := range small {
		if err := c.actions.takeAll(a); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// nullCount reads the statistics of a column chunk; -1 is unknown.
func nullCount(pq *file.Reader, group, col int) (int64, error) {
	chunk, err := pq.MetaData().RowGroup(group).ColumnChunk(col)
	if err != nil {
		return -1, err
	}
	st, err := chunk.Statistics()
	if err != nil || st == nil || !st.HasNullCount() {
		return -1, err
	}
	return st.NullCount(), nil
}
