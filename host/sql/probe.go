package sql

/*
void weir_probe_bind(void *);
void weir_probe_run(void *, void *, void *);
*/
import "C"

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/weir-data/weir/host/fault"
)

// probeFunction stands in a tree for an operation whose meaning depends on the
// types of its arguments: __weir_probe(number, arguments…). Binding the tree tells
// the types; a tree with a probe never runs.
const probeFunction = reservedPrefix + "probe"

// probe is what binding has told about an operation.
type probe struct {
	types    []sqlType
	bound    bool
	conflict bool // it was bound with other types, too
}

// probed holds the probes that are out, by number.
var (
	probed      sync.Map // int64 → probe
	probeNumber atomic.Int64
)

// registerProbe makes the function known to an instance.
func registerProbe(c *connection) error {
	f := mapping.CreateScalarFunction()
	defer mapping.DestroyScalarFunction(&f)
	mapping.ScalarFunctionSetName(f, probeFunction)
	anyType := mapping.CreateLogicalType(mapping.TypeAny)
	defer mapping.DestroyLogicalType(&anyType)
	result := mapping.CreateLogicalType(mapping.TypeSQLNull)
	defer mapping.DestroyLogicalType(&result)
	mapping.ScalarFunctionSetVarargs(f, anyType)
	mapping.ScalarFunctionSetReturnType(f, result)
	mapping.ScalarFunctionSetSpecialHandling(f)
	mapping.ScalarFunctionSetVolatile(f)
	mapping.ScalarFunctionSetBind(f, C.weir_probe_bind)
	mapping.ScalarFunctionSetFunction(f, C.weir_probe_run)
	if mapping.RegisterScalarFunction(c.conn, f) == mapping.StateError {
		return fault.New("INTERNAL_ERROR", "DuckDB does not take the probe function")
	}
	return nil
}

//export weir_probe_bind
func weir_probe_bind(ptr unsafe.Pointer) {
	info := mapping.BindInfo{Ptr: ptr}
	if err := guarded(func() error { return bindProbe(info) }); err != nil {
		mapping.ScalarFunctionBindSetError(info, err.Error())
	}
}

// bindProbe notes the types of a probe's arguments under its number.
func bindProbe(info mapping.BindInfo) error {
	var types []sqlType
	for i := mapping.IdxT(1); i < mapping.ScalarFunctionBindGetArgumentCount(info); i++ {
		arg := mapping.ScalarFunctionBindGetArgument(info, i)
		t := mapping.ExpressionReturnType(arg)
		types = append(types, typeOf(t))
		mapping.DestroyLogicalType(&t)
		mapping.DestroyExpression(&arg)
	}
	number, err := probeNumberOf(info)
	if err != nil {
		return err
	}
	if was, ok := probed.Load(number); ok {
		p := was.(probe)
		p.conflict = p.conflict || p.bound && !slices.EqualFunc(p.types, types, sqlType.equal)
		p.types, p.bound = types, true
		probed.Store(number, p)
	}
	return nil
}

func probeNumberOf(info mapping.BindInfo) (int64, error) {
	var ctx mapping.ClientContext
	mapping.ScalarFunctionGetClientContext(info, &ctx)
	defer mapping.DestroyClientContext(&ctx)
	arg := mapping.ScalarFunctionBindGetArgument(info, 0)
	defer mapping.DestroyExpression(&arg)
	var v mapping.Value
	if err := errorOf(mapping.ExpressionFold(ctx, arg, &v)); err != nil {
		return 0, err
	}
	defer mapping.DestroyValue(&v)
	return strconv.ParseInt(mapping.GetVarchar(v), 10, 64)
}

//export weir_probe_run
func weir_probe_run(info, rows, out unsafe.Pointer) {
	mapping.ScalarFunctionSetError(mapping.FunctionInfo{Ptr: info}, "a probe is no function")
}

// sqlType is a type of DuckDB's.
type sqlType struct {
	id           string // as the tree spells it
	width, scale int    // of a DECIMAL
	fields       []sqlField
}

// sqlField is a field of a STRUCT; the element of a LIST is the one without a
// name, a MAP has its key and its value.
type sqlField struct {
	name string
	sqlType
}

func (t sqlType) elem() sqlType { return t.fields[0].sqlType }

var typeIDs = map[mapping.Type]string{
	mapping.TypeBoolean: "BOOLEAN", mapping.TypeTinyInt: "TINYINT", mapping.TypeSmallInt: "SMALLINT", mapping.TypeInteger: "INTEGER",
	mapping.TypeBigInt: "BIGINT", mapping.TypeUTinyInt: "UTINYINT", mapping.TypeUSmallInt: "USMALLINT", mapping.TypeUInteger: "UINTEGER",
	mapping.TypeUBigInt: "UBIGINT", mapping.TypeHugeInt: "HUGEINT", mapping.TypeUHugeInt: "UHUGEINT", mapping.TypeFloat: "FLOAT", mapping.TypeDouble: "DOUBLE",
	mapping.TypeDecimal: "DECIMAL", mapping.TypeVarchar: "VARCHAR", mapping.TypeBlob: "BLOB", mapping.TypeDate: "DATE", mapping.TypeTime: "TIME",
	mapping.TypeTimestamp: "TIMESTAMP", mapping.TypeTimestampTZ: "TIMESTAMP WITH TIME ZONE", mapping.TypeInterval: "INTERVAL",
	mapping.TypeList: "LIST", mapping.TypeArray: "ARRAY", mapping.TypeStruct: "STRUCT", mapping.TypeMap: "MAP", mapping.TypeSQLNull: "NULL", mapping.TypeUUID: "UUID", mapping.TypeTimestampS: "TIMESTAMP", mapping.TypeTimestampMS: "TIMESTAMP",
	mapping.TypeStringLiteral: "VARCHAR", mapping.TypeIntegerLiteral: integerLiteral,
}

// integerLiteral is a whole number that stands in the text: DuckDB settles its type where it is used.
const integerLiteral = "INTEGER_LITERAL"

func typeOf(t mapping.LogicalType) sqlType {
	out := sqlType{id: typeIDs[mapping.GetTypeId(t)]}
	if out.id == "" {
		out.id = "OTHER" // one that Spark does not have
	}
	inside := func(name string, child mapping.LogicalType) {
		out.fields = append(out.fields, sqlField{name, typeOf(child)})
		mapping.DestroyLogicalType(&child)
	}
	switch out.id {
	case "DECIMAL":
		out.width, out.scale = int(mapping.DecimalWidth(t)), int(mapping.DecimalScale(t))
	case "LIST":
		inside("", mapping.ListTypeChildType(t))
	case "ARRAY":
		inside("", mapping.ArrayTypeChildType(t))
		out.id = "LIST"
	case "MAP":
		inside("key", mapping.MapTypeKeyType(t))
		inside("value", mapping.MapTypeValueType(t))
	case "STRUCT":
		for i := range mapping.StructTypeChildCount(t) {
			inside(mapping.StructTypeChildName(t, i), mapping.StructTypeChildType(t, i))
		}
	}
	return out
}
