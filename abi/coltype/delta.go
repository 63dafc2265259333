package coltype

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// DeltaType says whether a Delta table can hold the type: nil, or an error
// that names the part it cannot hold and what to use instead.
func DeltaType(dt arrow.DataType) error { return deltaType(dt, nil, 0) }

var deltaInstead = map[arrow.Type]string{
	arrow.NULL:              "give the column a type",
	arrow.UINT8:             "use smallint",
	arrow.UINT16:            "use int",
	arrow.UINT32:            "use bigint",
	arrow.UINT64:            "use decimal(20,0)",
	arrow.LARGE_STRING:      "use string",
	arrow.LARGE_BINARY:      "use binary",
	arrow.FIXED_SIZE_BINARY: "use binary",
	arrow.LARGE_LIST:        "use array",
	arrow.FIXED_SIZE_LIST:   "use array",
	arrow.TIME32:            "use string, or int for the seconds",
	arrow.TIME64:            "use string, or bigint for the microseconds",
	arrow.DURATION:          "use bigint",
	arrow.DECIMAL256:        "use decimal up to 38 digits, or string",
}

func deltaType(dt arrow.DataType, path []string, depth int) error {
	if depth > maxDepth {
		return errorf(CodeNotDelta, "a type nested deeper than %d", maxDepth)
	}
	if dt == nil {
		return notDelta(dt, path, "give the column a type")
	}
	switch t := dt.(type) {
	case *arrow.BooleanType, *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type,
		*arrow.Float32Type, *arrow.Float64Type, *arrow.StringType, *arrow.BinaryType, *arrow.Date32Type:
		return nil
	case *arrow.Decimal128Type:
		if t.Precision < 1 || t.Precision > 38 || t.Scale < 0 || t.Scale > t.Precision {
			return notDelta(dt, path, "use a precision of 1 to 38 and a scale of 0 to the precision")
		}
		return nil
	case *arrow.TimestampType:
		if t.Unit != arrow.Microsecond || t.TimeZone != "" && t.TimeZone != "UTC" {
			return notDelta(dt, path, "use timestamp (microseconds, UTC) or timestamp_ntz")
		}
		return nil
	case *arrow.ListType:
		return deltaType(t.Elem(), append(path, "element"), depth+1)
	case *arrow.MapType:
		if err := deltaType(t.KeyType(), append(path, "key"), depth+1); err != nil {
			return err
		}
		return deltaType(t.ItemType(), append(path, "value"), depth+1)
	case *arrow.StructType:
		if t.NumFields() == 0 {
			return notDelta(dt, path, "give the struct a field")
		}
		for _, f := range t.Fields() {
			if err := deltaType(f.Type, append(path, f.Name), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return notDelta(dt, path, deltaInstead[dt.ID()])
}

func notDelta(dt arrow.DataType, path []string, instead string) error {
	where, hint := "", ""
	if len(path) > 0 {
		where = " at " + strings.Join(path, ".")
	}
	if instead != "" {
		hint = "; " + instead
	}
	return errorf(CodeNotDelta, "type %s%s has no Delta type%s", String(dt), where, hint)
}
