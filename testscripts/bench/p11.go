package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	_ "github.com/duckdb/duckdb-go/v2" // the peer

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/stream"
)

// runP11 measures AUTO CDC FROM SNAPSHOT where one row in a thousand has changed:
// the snapshot is read from its table, compared with what the target shows and
// taken into it. The peer is DuckDB, which joins the files of both snapshots and
// says which rows differ; it keeps no history and writes nothing.
func runP11(ctx context.Context, dir string, s settings) ([]figure, error) {
	rows := s.scaled(5_000_000)
	x, err := newSnapshots(ctx, dir, rows)
	if err != nil {
		return nil, err
	}
	defer x.close()
	if _, err := x.take(ctx); err != nil {
		return nil, err
	}
	var written, changed int64
	run := func() error {
		res, err := x.take(ctx)
		changed = res.Metrics.Applied.Updated + res.Metrics.Applied.Inserted
		return err
	}
	var before time.Time
	ours, theirs, err := race(s.repeats, side{func() error { before = time.Now(); return nil }, run}, side{nil, func() error { return x.join(ctx, changed) }})
	if err != nil {
		return nil, err
	}
	if written, err = since(filepath.Join(dir, "lake", "target"), before); err != nil {
		return nil, err
	}
	if err := s.profiled("p11", run); err != nil {
		return nil, err
	}
	return []figure{figure{
		Case: fmt.Sprintf("%d customers, 0.1 %% changed, %d kB written", rows, written/1000), Must: 0.5, Aim: 1, Peer: "DuckDB, a full outer join of both",
	}.faster(ours, theirs)}, nil
}

// since counts the bytes of files that are newer than a moment.
func since(dir string, after time.Time) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(after) {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// snapshots are two extracts of the same customers, and a target that takes one
// after the other.
type snapshots struct {
	dir    string
	lake   storage.Store
	tables [2]*delta.Table
	state  *state.Store
	db     *sql.DB
	turn   int
}

func newSnapshots(ctx context.Context, dir string, rows int) (*snapshots, error) {
	lake, err := storage.OpenDir(filepath.Join(dir, "lake"), storage.NoSync)
	if err != nil {
		return nil, err
	}
	x := &snapshots{dir: dir, lake: lake}
	for i := range x.tables {
		x.tables[i] = delta.Open(storage.Sub(lake, fmt.Sprintf("extract%d", i)))
		if err := writeCustomers(ctx, x.tables[i], rows, i); err != nil {
			return nil, err
		}
	}
	x.state = state.Open(storage.Sub(lake, "state"), filepath.Join(dir, "cache"), memory.DefaultAllocator)
	x.db, err = sql.Open("duckdb", "")
	return x, err
}

func (x *snapshots) close() { _ = errors.Join(x.state.Close(), x.db.Close()) }

// take takes the other extract.
func (x *snapshots) take(ctx context.Context) (stream.Result, error) {
	x.turn++
	const name = "dev.silver.customer"
	f := &stream.Snapshots{
		Flow: stream.Flow{
			Dataset: name, Name: "customer", Pipeline: "bench", UpdateID: fmt.Sprint(x.turn),
			Side:       map[string]*delta.Table{"extract": x.tables[x.turn%2]},
			Steps:      []stream.Step{wholeTable{}},
			Target:     stream.Target{Table: delta.Open(storage.Sub(x.lake, "target")), Name: name, Properties: map[string]string{"delta.enableDeletionVectors": "true"}},
			Checkpoint: storage.Sub(x.lake, "checkpoint"),
			Apply: cdc.NewSnapshots(cdc.Definition{
				Dataset: name, Flow: "customer", StateID: "bench/" + name + "/cdc-state", Keys: []string{"customer_id"}, SCDType: 2,
				Tracked: cdc.Choice{Only: []string{"segment"}}, Memory: 256 << 20, State: x.state, Cache: filepath.Join(x.dir, "cache"),
			}, arrow.FixedWidthTypes.Timestamp_us),
		},
		Fingerprint: "1", MaxShrink: 0.05,
	}
	res, err := stream.RunSnapshots(ctx, f, nil)
	if err == nil && res.Batches != 1 {
		err = fmt.Errorf("%d snapshots were taken", res.Batches)
	}
	return res, err
}

// join lets DuckDB find the rows that differ.
func (x *snapshots) join(ctx context.Context, want int64) error {
	var n int64
	err := x.db.QueryRowContext(ctx, fmt.Sprintf(
		`SELECT count(*) FROM '%[1]s/lake/extract0/*.parquet' a FULL OUTER JOIN '%[1]s/lake/extract1/*.parquet' b ON a.customer_id = b.customer_id
		WHERE a.customer_id IS NULL OR b.customer_id IS NULL OR (a.name, a.street, a.postal_code, a.city, a.country, a.segment, a.since) IS DISTINCT FROM
			(b.name, b.street, b.postal_code, b.city, b.country, b.segment, b.since)`, x.dir)).Scan(&n)
	if err == nil && (n == 0 || n > 2*want) {
		err = fmt.Errorf("DuckDB finds %d rows that differ, and %d rows were written", n, want)
	}
	return err
}

// wholeTable is SELECT * FROM extract.
type wholeTable struct{}

func (wholeTable) Schema(context.Context, *arrow.Schema) (*arrow.Schema, error) {
	return customerColumns, nil
}

func (wholeTable) Run(ctx context.Context, t *stream.Task, _ array.RecordReader) (array.RecordReader, error) {
	return t.OpenSide(ctx, "extract")
}

var customerColumns = func() *arrow.Schema {
	var fields []arrow.Field
	for _, name := range []string{"customer_id", "name", "street", "postal_code", "city", "country", "segment", "since"} {
		f := arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
		switch name {
		case "customer_id":
			f.Type = arrow.PrimitiveTypes.Int64
		case "since":
			f.Type = arrow.FixedWidthTypes.Date32
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil)
}()

// writeCustomers writes one extract. Of a thousand customers one has moved in the
// second one; of ten thousand one has another segment, and one is gone.
func writeCustomers(ctx context.Context, table *delta.Table, rows, extract int) error {
	w, err := table.Write(ctx, delta.WriteOptions{Schema: customerColumns, Name: "extract"})
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, customerColumns)
	defer b.Release()
	cities := []string{"Berlin", "Hamburg", "München", "Köln", "Frankfurt am Main", "Stuttgart", "Düsseldorf", "Leipzig"}
	flush := func() error {
		rec := b.NewRecordBatch()
		defer rec.Release()
		return w.Write(ctx, rec)
	}
	text := func(c int, format string, args ...any) {
		b.Field(c).(*array.StringBuilder).Append(fmt.Sprintf(format, args...))
	}
	for i := range rows {
		h := uint32(i) * 2654435761 //nolint:gosec // a hash
		moved, segment := 0, int(h>>20)%5
		if extract == 1 {
			switch i % 10_000 {
			case 17:
				continue
			case 1017:
				segment = (segment + 1) % 5
			default:
				if i%1000 == 18 {
					moved = 1
				}
			}
		}
		b.Field(0).(*array.Int64Builder).Append(int64(h) + int64(i)<<32)
		text(1, "Customer %08x GmbH & Co. KG", h)
		text(2, "%s %d", []string{"Hauptstraße", "Bahnhofstraße", "Gartenweg", "Am Markt"}[h%4], int(h>>8)%200+moved)
		text(3, "%05d", h%100_000)
		text(4, "%s", cities[h>>4%8%uint32(len(cities))])
		text(5, "DE")
		text(6, "segment-%d", segment)
		b.Field(7).(*array.Date32Builder).Append(arrow.Date32(10_000 + int32(h>>16)%9000)) //nolint:gosec // days
		if b.Field(0).Len() == 1<<16 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	adds, err := w.Close(ctx)
	if err != nil {
		return err
	}
	_, err = table.Commit(ctx, delta.Commit{Operation: "WRITE", Parameters: map[string]any{}, Schema: customerColumns, Add: adds})
	return err
}
