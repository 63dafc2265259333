package sql

/*
#include <stdint.h>
#include <stdlib.h>

void weir_scan_bind(void *);
void weir_scan_init(void *);
void weir_scan_next(void *, void *);
*/
import "C"

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/duckdb/duckdb-go/v2/arrowmapping"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/weir-data/weir/host/fault"
)

// scanFunction is the table function through which DuckDB reads an input:
// weir_scan(number). A query of a user cannot name it.
const scanFunction = "__weir_scan"

// vectorRows is how many rows DuckDB takes at a time.
const vectorRows = 2048

// scan is one input of one query. DuckDB binds it any number of times and
// reads it once, on whichever thread it likes. The reader itself runs on one
// goroutine, a batch ahead: decoding and SQL overlap, and a reader that is a
// coroutine does not mind DuckDB's threads.
type scan struct {
	number int64
	reader array.RecordReader
	db     *database
	ctx    context.Context
	ahead  chan pulled
	stop   chan struct{}

	mu        sync.Mutex
	side      *connection // for conversions while the query's own is busy
	opened    bool
	columns   []int // of the reader, in the order DuckDB asked for; -1 for none
	converted arrowmapping.ArrowConvertedSchema
	schema    *arrow.Schema // of columns
	batch     arrow.RecordBatch
	offset    int64
	err       error
}

// scans finds a scan by the number in the query's text.
var (
	scans      sync.Map
	scanNumber atomic.Int64
)

// pulled is a batch of the reader, or why there are no more.
type pulled struct {
	rec arrow.RecordBatch
	err error
}

// newScan offers a reader under a number; close ends that.
func newScan(ctx context.Context, db *database, reader array.RecordReader) *scan {
	s := &scan{number: scanNumber.Add(1), reader: reader, db: db, ctx: ctx, ahead: make(chan pulled), stop: make(chan struct{})}
	reader.Retain()
	scans.Store(s.number, s)
	return s
}

func (s *scan) close() {
	scans.Delete(s.number)
	close(s.stop)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		for p := range s.ahead {
			if p.rec != nil {
				p.rec.Release()
			}
		}
	}
	if s.batch != nil {
		s.batch.Release()
		s.batch = nil
	}
	arrowmapping.DestroyArrowConvertedSchema(&s.converted)
	if s.side != nil {
		s.side.release()
		s.side = nil
	}
	s.reader.Release()
}

func (s *scan) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// connection gives the side connection, opened at first need.
func (s *scan) connection() (mapping.Connection, error) {
	if s.side == nil {
		c, err := s.db.connect()
		if err != nil {
			return mapping.Connection{}, err
		}
		s.side = c
	}
	return s.side.conn, nil
}

// registerScan makes the table function known to an instance.
func registerScan(c *connection) error {
	f := mapping.CreateTableFunction()
	defer mapping.DestroyTableFunction(&f)
	mapping.TableFunctionSetName(f, scanFunction)
	number := mapping.CreateLogicalType(mapping.TypeBigInt)
	defer mapping.DestroyLogicalType(&number)
	mapping.TableFunctionAddParameter(f, number)
	mapping.TableFunctionSetBind(f, C.weir_scan_bind)
	mapping.TableFunctionSetInit(f, C.weir_scan_init)
	mapping.TableFunctionSetFunction(f, C.weir_scan_next)
	mapping.TableFunctionSupportsProjectionPushdown(f, true)
	if mapping.RegisterTableFunction(c.conn, f) == mapping.StateError {
		return fault.New("INTERNAL_ERROR", "DuckDB does not take the scan function")
	}
	return nil
}

// guarded runs a callback of DuckDB's: a panic must not unwind into C.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "an input of the query panics: %v", p)
		}
	}()
	return f()
}

//export weir_scan_bind
func weir_scan_bind(ptr unsafe.Pointer) {
	info := mapping.BindInfo{Ptr: ptr}
	param := mapping.BindGetParameter(info, 0)
	number := mapping.GetInt64(param)
	mapping.DestroyValue(&param)
	found, ok := scans.Load(number)
	if !ok {
		mapping.BindSetError(info, fmt.Sprintf("no input has the number %d", number))
		return
	}
	s := found.(*scan)
	if err := guarded(func() error { return s.bind(info) }); err != nil {
		s.fail(err)
		mapping.BindSetError(info, err.Error())
		return
	}
	data := (*C.int64_t)(C.malloc(C.size_t(unsafe.Sizeof(number))))
	*data = C.int64_t(number)
	mapping.BindSetBindData(info, unsafe.Pointer(data), C.free)
}

func bound(data unsafe.Pointer) *scan {
	found, ok := scans.Load(int64(*(*C.int64_t)(data)))
	if !ok {
		return nil
	}
	return found.(*scan)
}

//export weir_scan_init
func weir_scan_init(ptr unsafe.Pointer) {
	info := mapping.InitInfo{Ptr: ptr}
	s := bound(mapping.InitGetBindData(info))
	if s == nil {
		mapping.InitSetError(info, "the input of the query is gone")
		return
	}
	mapping.InitSetMaxThreads(info, 1)
	var columns []int
	for i := range mapping.InitGetColumnCount(info) {
		columns = append(columns, int(mapping.InitGetColumnIndex(info, i)))
	}
	if err := guarded(func() error { return s.open(columns) }); err != nil {
		s.fail(err)
		mapping.InitSetError(info, err.Error())
	}
}

//export weir_scan_next
func weir_scan_next(ptr, out unsafe.Pointer) {
	info := mapping.FunctionInfo{Ptr: ptr}
	s := bound(mapping.FunctionGetBindData(info))
	if s == nil {
		mapping.FunctionSetError(info, "the input of the query is gone")
		return
	}
	if err := guarded(func() error { return s.next(mapping.DataChunk{Ptr: out}) }); err != nil {
		s.fail(err)
		mapping.FunctionSetError(info, err.Error())
	}
}

// fail remembers why the scan failed: DuckDB passes on only the text.
func (s *scan) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// bind tells DuckDB the columns. Their types are those that an empty batch has
// once converted.
func (s *scan) bind(info mapping.BindInfo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := s.connection()
	if err != nil {
		return err
	}
	schema := s.reader.Schema()
	converted, err := convertSchema(conn, schema)
	if err != nil {
		return err
	}
	defer arrowmapping.DestroyArrowConvertedSchema(&converted)
	empty := emptyBatch(schema)
	defer empty.Release()
	chunk, err := convert(conn, empty, converted)
	if err != nil {
		return err
	}
	defer mapping.DestroyDataChunk(&chunk)
	for i, f := range schema.Fields() {
		t := mapping.VectorGetColumnType(mapping.DataChunkGetVector(chunk, mapping.IdxT(i)))
		mapping.BindAddResultColumn(info, f.Name, t)
		mapping.DestroyLogicalType(&t)
	}
	return nil
}

// open starts the one scan, of the columns that the query needs. A second scan
// would find the reader at its end and give no rows in silence.
func (s *scan) open(columns []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return fault.New("INTERNAL_ERROR", "the query scans an input twice")
	}
	s.opened = true
	all := s.reader.Schema()
	var fields []arrow.Field
	for _, c := range columns {
		if c < 0 || c >= all.NumFields() {
			c = -1 // a column that only counts rows
		} else {
			fields = append(fields, all.Field(c))
		}
		s.columns = append(s.columns, c)
	}
	s.schema = arrow.NewSchema(fields, nil)
	go s.pull()
	conn, err := s.connection()
	if err != nil {
		return err
	}
	s.converted, err = convertSchema(conn, s.schema)
	return err
}

// pull reads the reader to its end, until close.
func (s *scan) pull() {
	defer close(s.ahead)
	for {
		var p pulled
		p.err = guarded(func() error {
			if !s.reader.Next() {
				return s.reader.Err()
			}
			p.rec = s.reader.RecordBatch()
			p.rec.Retain()
			return nil
		})
		select {
		case s.ahead <- p:
		case <-s.stop:
			if p.rec != nil {
				p.rec.Release()
			}
			return
		}
		if p.rec == nil {
			return
		}
	}
}

// next fills a chunk of DuckDB's with the next rows; it stays empty at the end.
func (s *scan) next(out mapping.DataChunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.batch == nil || s.offset >= s.batch.NumRows() {
		if s.batch != nil {
			s.batch.Release()
			s.batch = nil
		}
		var p pulled
		select {
		case p = <-s.ahead: // closed: the end was seen before
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		if p.rec == nil {
			mapping.DataChunkSetSize(out, 0)
			return p.err
		}
		s.batch, s.offset = s.project(p.rec), 0
		p.rec.Release()
	}
	n := min(s.batch.NumRows()-s.offset, vectorRows)
	if len(s.schema.Fields()) > 0 {
		if err := s.fill(out, n); err != nil {
			return err
		}
	}
	s.offset += n
	mapping.DataChunkSetSize(out, mapping.IdxT(n))
	return nil
}

// project gives the batch with the columns of the scan.
func (s *scan) project(rec arrow.RecordBatch) arrow.RecordBatch {
	cols := make([]arrow.Array, 0, len(s.columns))
	for _, c := range s.columns {
		if c >= 0 {
			cols = append(cols, rec.Column(c))
		}
	}
	return array.NewRecordBatch(s.schema, cols, rec.NumRows())
}

// fill makes the chunk's vectors refer to the batch's buffers.
func (s *scan) fill(out mapping.DataChunk, n int64) error {
	part, err := window(s.batch, s.offset, n)
	if err != nil {
		return err
	}
	defer part.Release()
	chunk, err := convert(s.side.conn, part, s.converted)
	if err != nil {
		return err
	}
	defer mapping.DestroyDataChunk(&chunk)
	from := mapping.IdxT(0)
	for to, c := range s.columns {
		if c < 0 {
			continue
		}
		mapping.VectorReferenceVector(mapping.DataChunkGetVector(out, mapping.IdxT(to)), mapping.DataChunkGetVector(chunk, from))
		from++
	}
	return nil
}

// window gives n rows of a batch. Nested columns are copied: DuckDB loses its
// way in the offsets of their children.
func window(rec arrow.RecordBatch, offset, n int64) (arrow.RecordBatch, error) {
	part := rec.NewSlice(offset, offset+n)
	cols := make([]arrow.Array, part.NumCols())
	copied := false
	for i, c := range part.Columns() {
		cols[i] = c
		if _, nested := c.DataType().(arrow.NestedType); nested {
			whole, err := array.Concatenate([]arrow.Array{c}, memory.DefaultAllocator)
			if err != nil {
				part.Release()
				return nil, fault.Wrap(err, "INTERNAL_ERROR", "column %s cannot be copied", rec.ColumnName(i))
			}
			defer whole.Release()
			cols[i], copied = whole, true
		}
	}
	if !copied {
		return part, nil
	}
	defer part.Release()
	return array.NewRecordBatch(rec.Schema(), cols, n), nil
}

func convertSchema(conn mapping.Connection, schema *arrow.Schema) (arrowmapping.ArrowConvertedSchema, error) {
	converted, ed := arrowmapping.SchemaFromArrow(conn, schema)
	if err := errorOf(ed); err != nil {
		arrowmapping.DestroyArrowConvertedSchema(&converted)
		return arrowmapping.ArrowConvertedSchema{}, fault.Wrap(err, "UNSUPPORTED_DATATYPE", "the SQL engine does not take a column's type")
	}
	return converted, nil
}

func convert(conn mapping.Connection, rec arrow.RecordBatch, schema arrowmapping.ArrowConvertedSchema) (mapping.DataChunk, error) {
	chunk, ed := arrowmapping.DataChunkFromArrow(conn, rec, schema)
	if err := errorOf(ed); err != nil {
		mapping.DestroyDataChunk(&chunk)
		return mapping.DataChunk{}, fault.Wrap(err, "UNSUPPORTED_DATATYPE", "the SQL engine does not take a batch")
	}
	return chunk, nil
}

// errorOf takes the message out of DuckDB's error and frees it.
func errorOf(ed mapping.ErrorData) error {
	defer mapping.DestroyErrorData(&ed)
	if mapping.ErrorDataHasError(ed) {
		return fmt.Errorf("%s", mapping.ErrorDataMessage(ed))
	}
	return nil
}
