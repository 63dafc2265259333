package delta

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/weir-data/weir/host/fault"
)

// groupsWithout gives the runs of rows, of whole row groups, in which the
// predicate is true for no row by what the file's footer says.
func (pr *pruner) groupsWithout(s *Snapshot, add *AddFile, pf *parquetFile) (runs [][2]int64, err error) {
	defer guard(&err, "DELTA_INVALID_DATA_FILE", "the statistics")
	if len(pr.columns) == 0 || pf.reader.NumRowGroups() == 0 {
		return nil, nil
	}
	fr, err := newArrowReader(pf.reader, s.table.mem)
	if err != nil {
		return nil, err
	}
	leaves := make([]int, len(pr.columns))
	for i := range pr.columns {
		leaves[i] = s.leafOf(pr.columns[i].fields, fr.Manifest.Fields)
	}
	known := fileSpans(add, pr.columns)
	at := int64(0)
	for g := range pf.reader.NumRowGroups() {
		spans := make([]span, len(pr.columns))
		for i := range pr.columns {
			switch c := &pr.columns[i]; {
			case c.partition != "":
				spans[i] = known[i]
			case leaves[i] == leafMissing || c.typ != nil && isVoid(c.typ):
				spans[i] = span{allNulls: true}
			case leaves[i] >= 0 && c.typ != nil:
				spans[i] = groupSpan(pf, g, leaves[i], c.typ)
			}
		}
		rows := pf.reader.RowGroup(g).NumRows()
		if pr.root.outcomes(spans)&maybeTrue == 0 && rows > 0 {
			if n := len(runs); n > 0 && runs[n-1][1] == at {
				runs[n-1][1] += rows
			} else {
				runs = append(runs, [2]int64{at, at + rows})
			}
		}
		at += rows
	}
	if at != pf.reader.NumRows() {
		return nil, fault.New("DELTA_INVALID_DATA_FILE", "its row groups have %d rows, the file %d", at, pf.reader.NumRows())
	}
	return runs, nil
}

// What leafOf gives where there is no leaf.
const (
	leafMissing = -1 // a scan gives NULL
	leafUnknown = -2
)

// leafOf finds the Parquet column of a path of fields, the way a scan does.
func (s *Snapshot) leafOf(path []*field, stored []pqarrow.SchemaField) int {
	match := s.matcher()
	for i, f := range path {
		candidates := make([]arrow.Field, len(stored))
		for k := range stored {
			candidates[k] = *stored[k].Field
		}
		j := match(f, candidates)
		switch {
		case j < 0:
			return leafMissing
		case i == len(path)-1 && stored[j].IsLeaf():
			return stored[j].ColIndex
		case i == len(path)-1 || stored[j].Field.Type.ID() != arrow.STRUCT:
			return leafUnknown
		}
		stored = stored[j].Children
	}
	return leafUnknown
}

// groupSpan reads the statistics of one column of a row group. Bounds of the
// old kind count for signed integers only: of others writers got the order wrong.
func groupSpan(pf *parquetFile, group, leaf int, t *primitive) span {
	var out span
	meta := pf.reader.MetaData()
	chunk := meta.RowGroups[group].GetColumns()[leaf].GetMetaData()
	descr := meta.Schema.Column(leaf)
	if chunk == nil || !chunk.IsSetStatistics() || descr.MaxRepetitionLevel() > 0 {
		return out
	}
	st := chunk.GetStatistics()
	if st.IsSetNullCount() {
		out.noNulls = st.GetNullCount() == 0
		out.allNulls = st.GetNullCount() == chunk.GetNumValues()
	}
	read := func(set bool, value []byte) *datum {
		if !set {
			return nil
		}
		return statDatum(value, descr, t)
	}
	switch {
	case descr.ColumnOrder() == parquet.ColumnOrders.TypeDefinedOrder && (st.IsSetMinValue() || st.IsSetMaxValue()):
		out.low, out.high = read(st.IsSetMinValue(), st.GetMinValue()), read(st.IsSetMaxValue(), st.GetMaxValue())
	case descr.PhysicalType() == parquet.Types.Int32 || descr.PhysicalType() == parquet.Types.Int64:
		out.low, out.high = read(st.IsSetMin(), st.GetMin()), read(st.IsSetMax(), st.GetMax())
	}
	if out.high != nil && out.high.kind == timeKind {
		out.high.i++ // what is finer than a microsecond was cut off
	}
	return out
}

// statDatum decodes a bound of a footer where the file's type is one that the
// table's type is read from without a change of order.
func statDatum(value []byte, descr *schema.Column, t *primitive) *datum {
	whole := int64(0)
	physical := descr.PhysicalType()
	switch physical {
	case parquet.Types.Int32:
		if len(value) != 4 {
			return nil
		}
		whole = int64(int32(binary.LittleEndian.Uint32(value)))
	case parquet.Types.Int64, parquet.Types.Double:
		if len(value) != 8 {
			return nil
		}
		whole = int64(binary.LittleEndian.Uint64(value))
	case parquet.Types.Float:
		if len(value) != 4 {
			return nil
		}
		whole = int64(binary.LittleEndian.Uint32(value))
	}
	integer := physical == parquet.Types.Int32 || physical == parquet.Types.Int64
	kind := kindOf(t)
	switch logical := descr.LogicalType().(type) {
	case schema.IntLogicalType:
		if integer && logical.IsSigned() && (kind == intKind || kind == decimalKind) {
			return &datum{kind: intKind, i: whole}
		}
	case schema.DateLogicalType:
		if integer && kind == dateKind {
			return &datum{kind: dateKind, i: whole}
		}
	case schema.TimestampLogicalType:
		if physical == parquet.Types.Int64 && kind == timeKind {
			return micros(whole, logical.TimeUnit())
		}
	case schema.DecimalLogicalType:
		if kind == decimalKind {
			return decimalStat(value, whole, integer, logical.Scale())
		}
	case schema.StringLogicalType:
		if physical == parquet.Types.ByteArray && kind == textKind {
			return &datum{kind: textKind, s: string(value)}
		}
	case schema.NoLogicalType, schema.UnknownLogicalType:
		switch {
		case integer && (kind == intKind || kind == decimalKind):
			return &datum{kind: intKind, i: whole}
		case physical == parquet.Types.Double && kind == floatKind:
			return floatStat(math.Float64frombits(uint64(whole)))
		case physical == parquet.Types.Float && kind == floatKind:
			return floatStat(float64(math.Float32frombits(uint32(whole))))
		}
	}
	return nil
}

// floatStat leaves out NaN, which is no bound.
func floatStat(f float64) *datum {
	if math.IsNaN(f) {
		return nil
	}
	return &datum{kind: floatKind, f: f}
}

func micros(v int64, unit schema.TimeUnitType) *datum {
	switch unit {
	case schema.TimeUnitMicros:
		return &datum{kind: timeKind, i: min(v, math.MaxInt64-1)}
	case schema.TimeUnitMillis:
		if v < math.MaxInt64/1000-1 && v > math.MinInt64/1000 {
			return &datum{kind: timeKind, i: v * 1000}
		}
	case schema.TimeUnitNanos:
		return &datum{kind: timeKind, i: floorDiv(v, 1000)}
	}
	return nil
}

// decimalStat reads the whole number of a decimal: an integer, or bytes of which the first has the sign.
func decimalStat(value []byte, whole int64, integer bool, scale int32) *datum {
	n := big.NewInt(whole)
	if !integer {
		if len(value) == 0 || len(value) > 16 {
			return nil
		}
		n.SetBytes(value)
		if value[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(value))))
		}
	}
	if scale < 0 || scale > 38 {
		return nil
	}
	den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return &datum{kind: decimalKind, r: new(big.Rat).SetFrac(n, den)}
}
