package cdc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// NewSnapshots makes the applier of a flow of full snapshots. A snapshot is
// compared with the state, and what differs becomes changes whose sequence is its
// version: rows that are new or other are upserts, keys that are missing deletes.
// version is the type of the versions; nil, in SCD type 1 only, takes that of the
// first one.
func NewSnapshots(d Definition, version arrow.DataType) stream.SnapshotApplier {
	return &snapshots{d, version}
}

type snapshots struct {
	def     Definition
	version arrow.DataType
}

// sequenced adds the version to the columns of a snapshot.
func (s *snapshots) sequenced(rows *arrow.Schema, version arrow.DataType) *arrow.Schema {
	return arrow.NewSchema(append(slices.Clone(rows.Fields()), arrow.Field{Name: SequenceColumn, Type: version, Nullable: true}), nil)
}

// Schema gives the target's columns for snapshots of these.
func (s *snapshots) Schema(rows *arrow.Schema) (*arrow.Schema, error) {
	version := s.version
	if version == nil {
		if s.def.SCDType == 2 {
			return nil, s.def.fault("SNAPSHOT_VERSION_TYPE_UNKNOWN", "nothing says of which type the versions are, and with them %s", s.def.interval().Start)
		}
		version = arrow.PrimitiveTypes.Int64 // no column is of this type
	}
	return s.def.Schema(s.sequenced(rows, version))
}

// Latest gives the snapshot that the table shows.
func (s *snapshots) Latest(ctx context.Context, target *delta.Snapshot) (*stream.LatestSnapshot, error) {
	if target == nil {
		return nil, nil
	}
	k, ok := target.Txn(s.def.StateID)
	if !ok {
		return nil, nil
	}
	st, err := s.def.State.Load(ctx, k)
	if err != nil {
		return nil, fault.Place(err, "CDC_STATE_CORRUPT", fault.Where{Dataset: s.def.Dataset, Flow: s.def.Flow})
	}
	m := st.Manifest()
	if err := st.Release(); err != nil {
		return nil, err
	}
	if len(m.Snapshot) == 0 {
		if m.Entries == 0 {
			return nil, nil
		}
		return nil, s.def.fault("INCOMPATIBLE_FLOWS", "the table was made of single changes, and its flow now gives snapshots").
			WithHint("What is missing in the first snapshot would be taken for deleted: run a full refresh of the target, or fill another table")
	}
	latest := &stream.LatestSnapshot{}
	if err := json.Unmarshal(m.Snapshot, latest); err != nil {
		return nil, s.def.fault("CDC_STATE_CORRUPT", "the state does not say which snapshot the table shows: %v", err).WithHint("Run a full refresh of the target")
	}
	return latest, nil
}

// Begin starts the application of one snapshot.
func (s *snapshots) Begin(ctx context.Context, b stream.ApplyBatch) (_ stream.Application, err error) {
	if b.Rows == nil || b.Snapshot == nil {
		return s.empty(ctx, b)
	}
	mem := b.Alloc
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	version, err := s.versionOf(*b.Snapshot, mem)
	if err != nil {
		return nil, err
	}
	c := &comparison{version: version, text: *b.Snapshot}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Release(ctx))
		}
	}()
	b.Rows = s.sequenced(b.Rows, version.DataType())
	if c.apply, err = begin(ctx, &s.def, b, version.DataType()); err != nil {
		return nil, err
	}
	c.coder = newCoder(c.layout, b.Rows, b.Timestamp.UnixMicro(), c.mem)
	c.both = s.def.SCDType == 2 && slices.ContainsFunc(s.def.Tracked.Only, technical)
	return c, c.open(ctx)
}

// empty makes an application without rows: of a full refresh that takes all away.
func (s *snapshots) empty(ctx context.Context, b stream.ApplyBatch) (stream.Application, error) {
	app := &application{b: b}
	var err error
	app.apply, err = begin(ctx, &s.def, b, nil)
	return app, err
}

// versionOf gives a version as a column of one value.
func (s *snapshots) versionOf(v abi.Version, mem memory.Allocator) (arrow.Array, error) {
	t := s.version
	if t == nil {
		var ok bool
		if t, ok = abi.VersionType(v.Type); !ok {
			t = &arrow.Decimal256Type{Precision: 76, Scale: 38} // holds any decimal of 38 digits
		}
	}
	if !fits(v.Type, t) {
		return nil, s.def.fault("SNAPSHOT_VERSION_TYPE_CHANGED", "the snapshot's version %s is of type %s, and the target's are of type %s", v, v.Type, t).
			WithHint("Let the provider give versions of the type that is declared, or declare the one that it gives")
	}
	b := array.NewBuilder(mem, t)
	defer b.Release()
	if err := b.AppendValueFromString(v.Value); err != nil || b.Len() != 1 {
		return nil, s.def.fault("SNAPSHOT_VERSION_TYPE_CHANGED", "the snapshot's version %s is no value of type %s", v, t).
			WithHint("Declare a type of versions that holds it")
	}
	return b.NewArray(), nil
}

// fits tells whether versions of a type can be values of a column.
func fits(version string, t arrow.DataType) bool {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return version == abi.VersionInt
	case arrow.FLOAT32, arrow.FLOAT64:
		return version == abi.VersionFloat
	case arrow.STRING:
		return version == abi.VersionString
	case arrow.BINARY:
		return version == abi.VersionBytes
	case arrow.DATE32:
		return version == abi.VersionDate
	case arrow.TIMESTAMP:
		return version == abi.VersionTimestamp
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return version == abi.VersionDecimal
	}
	return false
}

// comparison is the application of one snapshot.
type comparison struct {
	*apply
	coder   *coder
	version arrow.Array // of one value
	text    abi.Version
	// both says that a row is another one also when only tracked columns differ,
	// which is so where technical ones are tracked by name.
	both bool

	mu        sync.Mutex // of all below while rows are taken
	flaws     flaws
	rows      int64 // of the snapshot, those that rules refused included
	unchanged int64
	twice     ties // rows whose key another row has

	known *known     // what the state shows, nil when it is compared in parts
	all   *collector // all rows, then
}

// open reads what the state shows, as far as it fits into memory.
func (c *comparison) open(ctx context.Context) error {
	c.tied = c.duplicates
	if c.state == nil || c.state.Entries() == 0 {
		return nil
	}
	if c.state.Entries()*knownBytes <= c.changes.limit {
		var err error
		c.known, err = c.knownOf(ctx, 0, 1)
		return err
	}
	c.all = &collector{schema: c.entries(), mem: c.mem, limit: c.changes.limit, dir: c.def.TempDir}
	return nil
}

// Take takes rows of the snapshot.
func (c *comparison) Take(ctx context.Context, _ int, rec arrow.RecordBatch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	coded, err := c.code(ctx, rec, &c.flaws)
	if err != nil || coded == nil {
		return err
	}
	switch {
	case c.all != nil:
		return c.all.add(ctx, coded)
	case c.known == nil: // all is new
		return c.changes.add(ctx, coded)
	}
	defer coded.Release()
	return c.probe(ctx, c.known, coded)
}

// Keep takes rows that rules refused: their keys are there.
func (c *comparison) Keep(ctx context.Context, rec arrow.RecordBatch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil && c.all == nil {
		c.rows += rec.NumRows()
		return nil
	}
	var nobody flaws // a row without a key is none that could be missed
	coded, err := c.code(ctx, rec, &nobody)
	if err != nil || coded == nil {
		return err
	}
	defer coded.Release()
	if c.all != nil {
		return c.all.add(ctx, kept(coded))
	}
	for _, h := range hashesOf(coded.Column(state.Hash)) {
		if at := c.known.find(&h); at >= 0 {
			c.known.marks[at] |= markKept
		}
	}
	return nil
}

// kept marks entries of rows that rules refused, so that they are told from others.
func kept(rec arrow.RecordBatch) arrow.RecordBatch {
	cols := slices.Clone(rec.Columns())
	kinds := kindColumn(make([]byte, rec.NumRows())) // state.Removed
	defer kinds.Release()
	cols[state.Kind] = kinds
	return array.NewRecordBatch(rec.Schema(), cols, rec.NumRows())
}

// code makes entries of rows, nil for none. Those without a key are flaws, and
// the rest is coded only where that is no failure.
func (c *comparison) code(ctx context.Context, rec arrow.RecordBatch, f *flaws) (arrow.RecordBatch, error) {
	c.rows += rec.NumRows()
	n := int(rec.NumRows())
	if n == 0 {
		return nil, nil
	}
	sequence, err := repeated(c.version, n, c.mem)
	if err != nil {
		return nil, err
	}
	defer sequence.Release()
	with := array.NewRecordBatch(c.coder.rows, append(slices.Clone(rec.Columns()), sequence), rec.NumRows())
	defer func() { with.Release() }()
	if f != &c.flaws {
		if keyed, err := c.keyed(ctx, with); err != nil {
			return nil, err
		} else if keyed != nil {
			with.Release()
			with = keyed
		}
	}
	got, err := c.coder.code(ctx, with)
	if err != nil {
		return nil, fault.Place(err, "INTERNAL_ERROR", fault.Where{Dataset: c.def.Dataset, Flow: c.def.Flow})
	}
	f.add(got.flaws)
	return got.rec, nil
}

// keyed gives the rows that have all keys, nil when all have.
func (c *comparison) keyed(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	var rows []int32
	for i := range int(rec.NumRows()) {
		if !slices.ContainsFunc(c.keys, func(k int) bool { at := c.coder.from[k]; return at < 0 || rec.Column(at).IsNull(i) }) {
			rows = append(rows, int32(i)) //nolint:gosec // a batch is not that large
		}
	}
	if len(rows) == int(rec.NumRows()) {
		return nil, nil
	}
	return takeRows(ctx, rec, rows, c.mem)
}

// repeated gives a column of one value, n times.
func repeated(one arrow.Array, n int, mem memory.Allocator) (arrow.Array, error) {
	at := indexColumn(make([]int32, n))
	defer at.Release()
	return takeArray(context.Background(), one, at, mem)
}

// Commit takes the snapshot into the table.
func (c *comparison) Commit(ctx context.Context, commit delta.Commit) (delta.Result, stream.Counts, error) {
	if err := c.flaws.err(c.def); err != nil {
		return delta.Result{}, stream.Counts{}, err
	}
	if err := c.settle(ctx); err != nil {
		return delta.Result{}, stream.Counts{}, err
	}
	if err := c.duplicates(&c.twice); err != nil {
		return delta.Result{}, stream.Counts{}, err
	}
	text, err := json.Marshal(stream.LatestSnapshot{Version: c.text, Rows: c.rows})
	if err != nil {
		return delta.Result{}, stream.Counts{}, c.def.fault("INTERNAL_ERROR", "the snapshot cannot be noted: %v", err)
	}
	return c.commit(ctx, commit, nil, stream.Counts{Unchanged: c.unchanged}, func(m *state.Manifest) { m.Snapshot = text })
}

// settle finds what is missing, and compares what was only gathered.
func (c *comparison) settle(ctx context.Context) error {
	if c.known != nil {
		return c.missing(ctx, c.known)
	}
	if c.all == nil {
		return nil
	}
	parts := c.all.parts(c.state.Entries())
	for parts < maxParts && c.state.Entries()*knownBytes > c.changes.limit*int64(parts) {
		parts *= 2
	}
	sealed, err := c.all.seal(ctx, parts)
	defer sealed.release()
	for p := 0; p < parts && err == nil; p++ {
		err = c.comparePart(ctx, sealed, p)
	}
	return err
}

func (c *comparison) comparePart(ctx context.Context, s *sealed, p int) error {
	rows, err := s.part(p)
	if err != nil {
		return err
	}
	defer rows.Release()
	known, err := c.knownOf(ctx, p, s.count)
	if err != nil {
		return err
	}
	if err := c.probe(ctx, known, rows); err != nil {
		return err
	}
	return c.missing(ctx, known)
}

// Release drops what the application holds.
func (c *comparison) Release(ctx context.Context) error {
	if c.version != nil {
		c.version.Release()
		c.version = nil
	}
	var errs []error
	if c.all != nil {
		errs = append(errs, c.all.release())
	}
	if c.apply != nil {
		errs = append(errs, c.apply.Release(ctx))
	}
	return errors.Join(errs...)
}

// duplicates is the error of rows whose key another row of the snapshot has.
func (c *comparison) duplicates(t *ties) error { return t.repeated(c.def, c.text.String()) }
