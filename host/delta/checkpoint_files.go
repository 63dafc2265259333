package delta

import (
	"context"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
)

// logicalFiles are the add or the remove actions of a row group, with their keys.
type logicalFiles[T any] struct {
	rows  actionRows
	files []T
	keys  []string
}

// readFiles finds the rows that hold an action and makes room for the files.
func readFiles[T any](g *checkpointGroup, action string, setPath func(f *T, path string)) (*logicalFiles[T], error) {
	out := &logicalFiles[T]{}
	col, err := g.values(action + ".path")
	if err != nil || col == nil {
		return out, err
	}
	expected := g.pq.RowGroup(g.group).NumRows()
	if st, err := nullCount(g.pq, g.group, g.columns[action+".path"]); err == nil && st > 0 {
		expected -= st
	}
	expected = min(max(expected, 0), 1<<20) // a footer promises what it likes
	paths := make([]string, 0, expected)
	out.rows = make(actionRows, 0, expected)
	err = col.texts(func(row int32, v string) error {
		if v == "" {
			return fault.New("DELTA_INVALID_CHECKPOINT", "an %s action has no path", action)
		}
		out.rows, paths = append(out.rows, row), append(paths, v)
		return nil
	})
	if err != nil {
		return out, err
	}
	var f T
	if err := g.budget.spend(len(paths) * (int(unsafe.Sizeof(f)) + 32)); err != nil {
		return out, err
	}
	out.files = make([]T, len(paths))
	for i, p := range paths {
		setPath(&out.files[i], p)
	}
	out.keys = paths // until the vectors are known
	return out, nil
}

// identify makes the keys of the files.
func (l *logicalFiles[T]) identify(vector func(*T) *DeletionVector) (err error) {
	for i, path := range l.keys {
		if l.keys[i], err = fileKey(path, vector(&l.files[i])); err != nil {
			return err
		}
	}
	return nil
}

// adds reads the add actions of a row group. Statistics, which are most of the
// bytes, are read beside the other columns.
func (g *checkpointGroup) adds(ctx context.Context) (*logicalFiles[AddFile], error) {
	var stats textColumn
	var beside errgroup.Group
	beside.Go(func() (err error) {
		defer guard(&err, "DELTA_INVALID_CHECKPOINT", "the statistics")
		return stats.read(g, "add.stats")
	})
	out, err := g.addColumns()
	if more := beside.Wait(); err == nil {
		err = more
	}
	if err != nil {
		return nil, err
	}
	find := out.rows.find()
	for i, row := range stats.rows {
		if at := find(row); at >= 0 {
			out.files[at].Stats = stats.values[i]
		}
	}
	return out, g.parsedStats(ctx, out)
}

// textColumn holds the values of a column and their rows.
type textColumn struct {
	rows   []int32
	values []string
}

func (c *textColumn) read(g *checkpointGroup, path string) error {
	col, err := g.values(path)
	if err != nil || col == nil {
		return err
	}
	expected := min(max(g.pq.RowGroup(g.group).NumRows(), 0), 1<<20)
	c.rows, c.values = make([]int32, 0, expected), make([]string, 0, expected)
	return col.texts(func(row int32, v string) error {
		c.rows, c.values = append(c.rows, row), append(c.values, v)
		return nil
	})
}

func (g *checkpointGroup) addColumns() (*logicalFiles[AddFile], error) {
	out, err := readFiles(g, "add", func(f *AddFile, path string) { f.Path = path })
	if err != nil || len(out.files) == 0 {
		return out, err
	}
	rows, files := out.rows, out.files
	none := map[string]*string{}
	for i := range files {
		files[i].PartitionValues = none
	}
	vectors, err := g.vectors("add.deletionVector", rows)
	if err != nil {
		return nil, err
	}
	for i, dv := range vectors {
		files[i].DeletionVector = dv
	}
	partitions, tags := partitionMaps{}, stringMaps{}
	for _, read := range []func() error{
		func() error { return g.longs("add.size", rows, func(i int, v int64) { files[i].Size = v }) },
		func() error {
			return g.longs("add.modificationTime", rows, func(i int, v int64) { files[i].ModificationTime = v })
		},
		func() error { return g.bools("add.dataChange", rows, func(i int, v bool) { files[i].DataChange = v }) },
		func() error {
			return g.maps("add.partitionValues", rows, func(i int, e []mapEntry) { files[i].PartitionValues = partitions.of(e) })
		},
		func() error {
			return g.maps("add.tags", rows, func(i int, e []mapEntry) { files[i].Tags = tags.of(e) })
		},
		func() error { return g.longs("add.baseRowId", rows, func(i int, v int64) { files[i].BaseRowID = &v }) },
		func() error {
			return g.longs("add.defaultRowCommitVersion", rows, func(i int, v int64) { files[i].DefaultRowCommitVersion = &v })
		},
		func() error {
			return g.texts("add.clusteringProvider", rows, func(i int, v string) { files[i].ClusteringProvider = v })
		},
		func() error { return out.identify(func(f *AddFile) *DeletionVector { return f.DeletionVector }) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// removes reads the tombstones of a row group.
func (g *checkpointGroup) removes() (*logicalFiles[RemoveFile], error) {
	out, err := readFiles(g, "remove", func(f *RemoveFile, path string) { f.Path = path })
	if err != nil || len(out.files) == 0 {
		return out, err
	}
	rows, files := out.rows, out.files
	none := map[string]*string{}
	for i := range files {
		files[i].PartitionValues = none
	}
	vectors, err := g.vectors("remove.deletionVector", rows)
	if err != nil {
		return nil, err
	}
	for i, dv := range vectors {
		files[i].DeletionVector = dv
	}
	partitions, tags := partitionMaps{}, stringMaps{}
	for _, read := range []func() error{
		func() error {
			return g.longs("remove.deletionTimestamp", rows, func(i int, v int64) { files[i].DeletionTimestamp = &v })
		},
		func() error {
			return g.bools("remove.dataChange", rows, func(i int, v bool) { files[i].DataChange = v })
		},
		func() error {
			return g.bools("remove.extendedFileMetadata", rows, func(i int, v bool) { files[i].ExtendedFileMetadata = v })
		},
		func() error {
			return g.maps("remove.partitionValues", rows, func(i int, e []mapEntry) { files[i].PartitionValues = partitions.of(e) })
		},
		func() error { return g.longs("remove.size", rows, func(i int, v int64) { files[i].Size = &v }) },
		func() error {
			return g.maps("remove.tags", rows, func(i int, e []mapEntry) { files[i].Tags = tags.of(e) })
		},
		func() error {
			return g.longs("remove.baseRowId", rows, func(i int, v int64) { files[i].BaseRowID = &v })
		},
		func() error {
			return g.longs("remove.defaultRowCommitVersion", rows, func(i int, v int64) { files[i].DefaultRowCommitVersion = &v })
		},
		func() error { return out.identify(func(f *RemoveFile) *DeletionVector { return f.DeletionVector }) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// vectors reads the deletion vectors; nil when no file has one.
func (g *checkpointGroup) vectors(prefix string, rows actionRows) (out []*DeletionVector, err error) {
	err = g.texts(prefix+".storageType", rows, func(i int, v string) {
		if out == nil {
			out = make([]*DeletionVector, len(rows))
		}
		if v != "" {
			out[i] = &DeletionVector{StorageType: v}
		}
	})
	if err != nil || out == nil {
		return nil, err
	}
	with := func(i int, set func(dv *DeletionVector)) {
		if out[i] != nil {
			set(out[i])
		}
	}
	for _, read := range []func() error{
		func() error {
			return g.texts(prefix+".pathOrInlineDv", rows, func(i int, v string) { with(i, func(dv *DeletionVector) { dv.PathOrInlineDv = v }) })
		},
		func() error {
			return g.longs(prefix+".offset", rows, func(i int, v int64) {
				offset := int32(v)
				with(i, func(dv *DeletionVector) { dv.Offset = &offset })
			})
		},
		func() error {
			return g.longs(prefix+".sizeInBytes", rows, func(i int, v int64) { with(i, func(dv *DeletionVector) { dv.SizeInBytes = int32(v) }) })
		},
		func() error {
			return g.longs(prefix+".cardinality", rows, func(i int, v int64) { with(i, func(dv *DeletionVector) { dv.Cardinality = v }) })
		},
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// partitionMaps makes maps of partition values, one for all files of a partition.
type partitionMaps struct {
	made map[string]map[string]*string
	key  []byte
}

func (p *partitionMaps) of(entries []mapEntry) map[string]*string {
	p.key = appendEntries(p.key[:0], entries)
	m, ok := p.made[string(p.key)]
	if !ok {
		m = make(map[string]*string, len(entries))
		for _, e := range entries {
			if e.null {
				m[e.key] = nil
			} else {
				m[e.key] = &e.value
			}
		}
		if p.made == nil {
			p.made = map[string]map[string]*string{}
		}
		p.made[string(p.key)] = m
	}
	return m
}

// stringMaps makes maps of strings, one for all that are equal.
type stringMaps struct {
	made map[string]map[string]string
	key  []byte
}

func (s *stringMaps) of(entries []mapEntry) map[string]string {
	s.key = appendEntries(s.key[:0], entries)
	m, ok := s.made[string(s.key)]
	if !ok {
		m = make(map[string]string, len(entries))
		for _, e := range entries {
			m[e.key] = e.value
		}
		if s.made == nil {
			s.made = map[string]map[string]string{}
		}
		s.made[string(s.key)] = m
	}
	return m
}

func appendEntries(key []byte, entries []mapEntry) []byte {
	for _, e := range entries {
		key = append(append(key, itoa(int64(len(e.key)))...), ':')
		key = append(key, e.key...)
		if e.null {
			key = append(key, '-')
			continue
		}
		key = append(append(key, itoa(int64(len(e.value)))...), ':')
		key = append(key, e.value...)
	}
	return key
}

// parsedStats fills in statistics from their struct where a file has no string.
func (g *checkpointGroup) parsedStats(ctx context.Context, adds *logicalFiles[AddFile]) error {
	if !slices.ContainsFunc(adds.files, func(f AddFile) bool { return f.Stats == "" }) || g.below("add.stats_parsed", "") == "" {
		return nil
	}
	fr, err := newArrowReader(g.pq, g.table.mem)
	if err != nil {
		return fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "the schema")
	}
	index := slices.IndexFunc(fr.Manifest.Fields, func(f pqarrow.SchemaField) bool { return f.Field.Name == "add" })
	if index < 0 {
		return nil
	}
	leaves := map[int]bool{}
	for i := range fr.Manifest.Fields[index].Children {
		if c := &fr.Manifest.Fields[index].Children[i]; c.Field.Name == "stats_parsed" {
			leavesOf(c, leaves)
		}
	}
	r, err := fr.GetFieldReader(ctx, index, leaves, []int{g.group})
	if err != nil {
		return fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "column add.stats_parsed")
	}
	if r == nil {
		return nil
	}
	defer r.Release()
	find := adds.rows.find()
	for row, left := int32(0), g.pq.RowGroup(g.group).NumRows(); left > 0; {
		n := int(min(left, checkpointBatch))
		left -= int64(n)
		arr, err := nextArray(r, n, g.table.mem)
		if err != nil {
			return err
		}
		if s, parsed := structField(arr, "stats_parsed"); parsed != nil && s.Len() == n {
			for i := range n {
				if at := find(row + int32(i)); at >= 0 && adds.files[at].Stats == "" && s.IsValid(i) && parsed.IsValid(i) {
					adds.files[at].Stats = statsFromStruct(parsed, i)
				}
			}
		}
		arr.Release()
		row += int32(n)
	}
	return nil
}

// structField gives a struct and the struct that is its field of a name; nil where there is none.
func structField(arr arrow.Array, name string) (s, f *array.Struct) {
	s, ok := arr.(*array.Struct)
	if !ok {
		return nil, nil
	}
	if i, ok := s.DataType().(*arrow.StructType).FieldIdx(name); ok {
		f, _ = s.Field(i).(*array.Struct)
	}
	return s, f
}
