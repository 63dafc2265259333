package delta

import (
	"slices"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// maxCurveColumns is how many clustering columns count: the key's bits are
// shared among them, and what many share orders by none.
const maxCurveColumns = 8

// curveOrder puts rows in order along the Hilbert curve through the ranks of
// the clustering columns. It is made of a sample of the rows.
type curveOrder struct {
	paths   [][]string
	rankers []*ranker
	bits    int
	splits  []uint64 // ascending keys that cut the rows into parts of like size
}

// newCurveOrder makes an order for clustering columns, given as paths of names.
func newCurveOrder(schema *structType, paths [][]string) (*curveOrder, error) {
	o := &curveOrder{paths: paths[:min(len(paths), maxCurveColumns)]}
	for _, path := range o.paths {
		if schema.leaf(path) == nil {
			return nil, fault.New("DELTA_COLUMN_NOT_FOUND", "clustering column %q is not in the schema", strings.Join(path, "."))
		}
		o.rankers = append(o.rankers, &ranker{})
	}
	o.bits = min(12, curveBits(len(o.paths)))
	return o, nil
}

// tops names the top-level columns that hold the clustering columns.
func (o *curveOrder) tops() []string {
	var out []string
	for _, p := range o.paths {
		if !slices.Contains(out, p[0]) {
			out = append(out, p[0])
		}
	}
	return out
}

// columns finds the clustering columns in a batch.
func (o *curveOrder) columns(rec arrow.RecordBatch) []nestedColumn {
	out := make([]nestedColumn, len(o.paths))
	for i, path := range o.paths {
		arr := rec.Column(rec.Schema().FieldIndices(path[0])[0])
		for _, name := range path[1:] {
			s := arr.(*array.Struct)
			index, _ := s.DataType().(*arrow.StructType).FieldIdx(name)
			out[i].above = append(out[i].above, s)
			arr = s.Field(index)
		}
		out[i].leaf = arr
	}
	return out
}

// learn makes the ranks, and cuts the curve into parts, by a sample of the rows.
func (o *curveOrder) learn(sample []arrow.RecordBatch, parts int) error {
	for _, rec := range sample {
		for i, c := range o.columns(rec) {
			if err := o.rankers[i].sample(c); err != nil {
				return err
			}
		}
	}
	for _, r := range o.rankers {
		r.ready(1 << o.bits)
	}
	if parts < 2 {
		return nil
	}
	var keys []uint64
	for _, rec := range sample {
		keys = append(keys, o.keys(rec)...)
	}
	slices.Sort(keys)
	o.splits = slices.Compact(slices.Clone(quantiles(keys, parts)))
	return nil
}

// keys gives the keys of the rows of a batch.
func (o *curveOrder) keys(rec arrow.RecordBatch) []uint64 {
	columns := o.columns(rec)
	axes := make([]uint32, len(columns))
	out := make([]uint64, rec.NumRows())
	for row := range out {
		for c := range columns {
			axes[c] = o.rankers[c].rank(columns[c], row)
		}
		out[row] = hilbertKey(axes, o.bits)
	}
	return out
}

// part tells in which of the parts between the splits a key lies.
func (o *curveOrder) part(key uint64) int {
	return sort.Search(len(o.splits), func(i int) bool { return o.splits[i] > key })
}
