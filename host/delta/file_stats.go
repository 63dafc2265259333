package delta

import (
	"context"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"
)

// FileStats lists the live files with their statistics as a table, one row a
// file, in no order: path, size_bytes, modification_time, num_records,
// deleted_records, and for each column that has statistics null_count.<column>,
// min.<column> and max.<column>, for each partition column partition.<column>.
// What a file has no statistics of is null. The caller releases the reader.
func (s *Snapshot) FileStats(ctx context.Context) (array.RecordReader, error) {
	p := s.parsedColumns(s.table.mem)
	schema := p.listSchema()
	files := make([]*AddFile, 0, s.files.n)
	for f := range s.EachFile() {
		files = append(files, f)
	}
	const batch = 16 << 10
	recs := make([]arrow.RecordBatch, (len(files)+batch-1)/batch)
	defer func() {
		for _, r := range recs {
			if r != nil {
				r.Release()
			}
		}
	}()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range recs {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			recs[i], err = p.list(schema, files[i*batch:min((i+1)*batch, len(files))])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return array.NewRecordReader(schema, recs)
}

func (p *parsedColumns) listSchema() *arrow.Schema {
	stamp := &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}
	fields := []arrow.Field{
		{Name: "path", Type: textType}, {Name: "size_bytes", Type: longType}, {Name: "modification_time", Type: stamp},
		optional("num_records", longType), {Name: "deleted_records", Type: longType},
	}
	for _, l := range p.leaves {
		name := strings.Join(l.names, ".")
		fields = append(fields, optional("null_count."+name, longType))
		if l.bounded {
			fields = append(fields, optional("min."+name, l.typ), optional("max."+name, l.typ))
		}
	}
	for _, f := range p.partitions {
		fields = append(fields, optional("partition."+f.name, f.typ.(*primitive).arrow))
	}
	return arrow.NewSchema(fields, nil)
}

// list makes the rows of some files.
func (p *parsedColumns) list(schema *arrow.Schema, files []*AddFile) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(p.mem, arrow.NewSchema(schema.Fields()[:3], nil))
	defer b.Release()
	b.Reserve(len(files))
	deleted := array.NewInt64Builder(p.mem)
	defer deleted.Release()
	deleted.Reserve(len(files))
	scanner := newStatsScanner(p.mem, p.leaves)
	defer scanner.release()
	scanner.reserve(len(files))
	paths, sizes, times := b.Field(0).(*array.StringBuilder), b.Field(1).(*array.Int64Builder), b.Field(2).(*array.TimestampBuilder)
	bytes := 0
	for _, f := range files {
		bytes += len(f.Path)
	}
	paths.ReserveData(bytes)
	for _, f := range files {
		paths.Append(f.Path)
		sizes.Append(f.Size)
		times.Append(arrow.Timestamp(f.ModificationTime))
		if f.DeletionVector != nil {
			deleted.Append(f.DeletionVector.Cardinality)
		} else {
			deleted.Append(0)
		}
		scanner.scan(f.Stats)
	}
	flat := scanner.arrays()
	defer releaseArrays(flat)
	partitions, err := p.partitionValues(files)
	if err != nil {
		return nil, err
	}
	head := b.NewRecordBatch()
	defer head.Release()
	columns := append([]arrow.Array{}, head.Columns()...)
	del := deleted.NewArray()
	defer del.Release()
	columns = append(columns, flat[sinkRecords], del)
	for i, l := range p.leaves {
		columns = append(columns, flat[sinkLeaves+3*i])
		if l.bounded {
			columns = append(columns, flat[sinkLeaves+3*i+1], flat[sinkLeaves+3*i+2])
		}
	}
	defer releaseArrays(partitions)
	return array.NewRecordBatch(schema, append(columns, partitions...), int64(len(files))), nil
}
