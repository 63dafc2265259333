package sql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/weir-data/weir/host/fault"
)

// outType is what a DuckDB type is outside.
type outType struct {
	arrow arrow.DataType
	sql   string // the DuckDB type to cast to
	cast  bool   // sql differs from the type it had
	// refused says why the type does not leave the engine, "" when it does.
	refused string
}

// canonical maps a DuckDB type to abi/coltype's canonical Arrow type. HUGEINT,
// which no other system stores, becomes DECIMAL(38,0) when wide is set.
func canonical(t mapping.LogicalType, wide bool) outType {
	plain := func(dt arrow.DataType, sql string) outType { return outType{arrow: dt, sql: sql} }
	as := func(dt arrow.DataType, sql string) outType { return outType{arrow: dt, sql: sql, cast: true} }
	refused := func(why string, args ...any) outType { return outType{refused: fmt.Sprintf(why, args...)} }
	switch mapping.GetTypeId(t) {
	case mapping.TypeBoolean:
		return plain(arrow.FixedWidthTypes.Boolean, "BOOLEAN")
	case mapping.TypeTinyInt:
		return plain(arrow.PrimitiveTypes.Int8, "TINYINT")
	case mapping.TypeSmallInt:
		return plain(arrow.PrimitiveTypes.Int16, "SMALLINT")
	case mapping.TypeInteger:
		return plain(arrow.PrimitiveTypes.Int32, "INTEGER")
	case mapping.TypeBigInt:
		return plain(arrow.PrimitiveTypes.Int64, "BIGINT")
	case mapping.TypeUTinyInt:
		return plain(arrow.PrimitiveTypes.Uint8, "UTINYINT")
	case mapping.TypeUSmallInt:
		return plain(arrow.PrimitiveTypes.Uint16, "USMALLINT")
	case mapping.TypeUInteger:
		return plain(arrow.PrimitiveTypes.Uint32, "UINTEGER")
	case mapping.TypeUBigInt:
		return plain(arrow.PrimitiveTypes.Uint64, "UBIGINT")
	case mapping.TypeFloat:
		return plain(arrow.PrimitiveTypes.Float32, "FLOAT")
	case mapping.TypeDouble:
		return plain(arrow.PrimitiveTypes.Float64, "DOUBLE")
	case mapping.TypeVarchar:
		out := plain(arrow.BinaryTypes.String, "VARCHAR")
		out.cast = mapping.LogicalTypeGetAlias(t) != "" // JSON
		return out
	case mapping.TypeBlob:
		return plain(arrow.BinaryTypes.Binary, "BLOB")
	case mapping.TypeDate:
		return plain(arrow.FixedWidthTypes.Date32, "DATE")
	case mapping.TypeTime:
		return plain(arrow.FixedWidthTypes.Time64us, "TIME")
	case mapping.TypeTimestamp:
		return plain(&arrow.TimestampType{Unit: arrow.Microsecond}, "TIMESTAMP")
	case mapping.TypeTimestampTZ:
		return plain(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, "TIMESTAMP WITH TIME ZONE")
	case mapping.TypeTimestampS, mapping.TypeTimestampMS:
		return as(&arrow.TimestampType{Unit: arrow.Microsecond}, "TIMESTAMP")
	case mapping.TypeDecimal:
		p, s := mapping.DecimalWidth(t), mapping.DecimalScale(t)
		return plain(&arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}, fmt.Sprintf("DECIMAL(%d,%d)", p, s))
	case mapping.TypeUUID, mapping.TypeEnum:
		return as(arrow.BinaryTypes.String, "VARCHAR")
	case mapping.TypeHugeInt:
		if wide {
			return as(&arrow.Decimal128Type{Precision: 38}, "DECIMAL(38,0)")
		}
		return refused("HUGEINT has no type in a table: CAST it to BIGINT or DECIMAL(38,0)")
	case mapping.TypeTimestampNS:
		return refused("TIMESTAMP_NS holds nanoseconds: CAST it to TIMESTAMP_NTZ")
	case mapping.TypeList, mapping.TypeArray:
		return canonicalList(t, wide)
	case mapping.TypeStruct:
		return canonicalStruct(t, wide)
	case mapping.TypeMap:
		return canonicalMap(t, wide)
	}
	out := refused("%s has no type in a table: CAST it to one, such as STRING", typeName(t))
	out.sql = typeName(t)
	return out
}

func canonicalList(t mapping.LogicalType, wide bool) outType {
	var child mapping.LogicalType
	fixed := mapping.GetTypeId(t) == mapping.TypeArray
	if fixed {
		child = mapping.ArrayTypeChildType(t)
	} else {
		child = mapping.ListTypeChildType(t)
	}
	defer mapping.DestroyLogicalType(&child)
	elem := canonical(child, wide)
	if elem.refused != "" {
		return elem
	}
	return outType{arrow: arrow.ListOf(elem.arrow), sql: elem.sql + "[]", cast: elem.cast || fixed}
}

func canonicalStruct(t mapping.LogicalType, wide bool) outType {
	out := outType{}
	var fields []arrow.Field
	var sql []string
	for i := range mapping.StructTypeChildCount(t) {
		child := mapping.StructTypeChildType(t, i)
		field := canonical(child, wide)
		mapping.DestroyLogicalType(&child)
		if field.refused != "" {
			return field
		}
		name := mapping.StructTypeChildName(t, i)
		if name == "" {
			return outType{refused: "a struct without names (a row) has no type in a table: use struct_pack(name := value)"}
		}
		out.cast = out.cast || field.cast
		fields = append(fields, arrow.Field{Name: name, Type: field.arrow, Nullable: true})
		sql = append(sql, quoteName(name)+" "+field.sql)
	}
	out.arrow, out.sql = arrow.StructOf(fields...), "STRUCT("+strings.Join(sql, ", ")+")"
	return out
}

func canonicalMap(t mapping.LogicalType, wide bool) outType {
	k, v := mapping.MapTypeKeyType(t), mapping.MapTypeValueType(t)
	defer mapping.DestroyLogicalType(&k)
	defer mapping.DestroyLogicalType(&v)
	key, value := canonical(k, wide), canonical(v, wide)
	if key.refused != "" {
		return key
	}
	if value.refused != "" {
		return value
	}
	return outType{arrow: arrow.MapOf(key.arrow, value.arrow), sql: "MAP(" + key.sql + ", " + value.sql + ")", cast: key.cast || value.cast}
}

// typeName names a DuckDB type that has no outer type.
func typeName(t mapping.LogicalType) string {
	names := map[mapping.Type]string{
		mapping.TypeInterval: "INTERVAL", mapping.TypeTimeTZ: "TIME WITH TIME ZONE", mapping.TypeBit: "BIT",
		mapping.TypeUHugeInt: "UHUGEINT", mapping.TypeUnion: "UNION", mapping.TypeSQLNull: "NULL",
	}
	if name, ok := names[mapping.GetTypeId(t)]; ok {
		return name
	}
	return "this type"
}

// retype gives the array with the canonical type; the layout is the same.
func retype(data arrow.ArrayData, dt arrow.DataType) arrow.ArrayData {
	children := data.Children()
	var out []arrow.ArrayData
	switch t := dt.(type) {
	case *arrow.ListType:
		out = []arrow.ArrayData{retype(children[0], t.Elem())}
	case *arrow.StructType:
		for i, c := range children {
			out = append(out, retype(c, t.Field(i).Type))
		}
	case *arrow.MapType:
		out = []arrow.ArrayData{retype(children[0], t.Elem())}
	}
	made := array.NewData(dt, data.Len(), data.Buffers(), out, data.NullN(), data.Offset())
	for _, c := range out {
		c.Release()
	}
	return made
}

// duckType writes a type as DuckDB does.
func duckType(dt arrow.DataType) (string, error) {
	switch t := dt.(type) {
	case *arrow.ListType:
		elem, err := duckType(t.Elem())
		return elem + "[]", err
	case *arrow.MapType:
		key, err := duckType(t.KeyType())
		if err != nil {
			return "", err
		}
		value, err := duckType(t.ItemType())
		return "MAP(" + key + ", " + value + ")", err
	case *arrow.StructType:
		fields := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			elem, err := duckType(f.Type)
			if err != nil {
				return "", err
			}
			fields[i] = quoteName(f.Name) + " " + elem
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")", nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale), nil
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return "TIMESTAMP_NTZ", nil
		}
		return "TIMESTAMP", nil
	}
	if name, ok := duckNames[dt.ID()]; ok {
		return name, nil
	}
	return "", fault.New("UNSUPPORTED_DATATYPE", "the type %s is not one of the SQL engine", dt)
}

var duckNames = map[arrow.Type]string{
	arrow.BOOL: "BOOLEAN", arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
	arrow.UINT8: "UTINYINT", arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT",
	arrow.FLOAT32: "FLOAT", arrow.FLOAT64: "DOUBLE", arrow.STRING: "VARCHAR", arrow.BINARY: "BLOB", arrow.DATE32: "DATE", arrow.TIME64: "TIME",
}
