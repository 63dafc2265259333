package sql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// jsonObject is get_json_object with a path of names and places.
func jsonObject(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, arity(name, len(args))
	}
	text, err := constantArgument(name, args[1])
	if err != nil {
		return true, err
	}
	path, err := jsonPath(text)
	if err != nil {
		return true, err
	}
	return true, r.wait(n, name+text, args[:1], ctx, signed(name, "s",
		"CASE WHEN json_valid(__1) THEN json_extract_string(__1, "+quoteText(path)+") END"))
}

// jsonPath writes $.a['b c'][0] as DuckDB does.
func jsonPath(text string) (string, error) {
	bad := fault.New("INVALID_JSON_PATH", "the path %q is not one of names and places, such as $.a.b[0]", text)
	if !strings.HasPrefix(text, "$") {
		return "", bad
	}
	var b strings.Builder
	b.WriteByte('$')
	key := func(k string) bool {
		if k == "" || strings.ContainsAny(k, `"\*`) {
			return false
		}
		b.WriteString(`."` + k + `"`)
		return true
	}
	for rest := text[1:]; rest != ""; {
		switch {
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if !key(rest[1 : 1+end]) {
				return "", bad
			}
			rest = rest[1+end:]
		case strings.HasPrefix(rest, "['"):
			end := strings.Index(rest, "']")
			if end < 0 || !key(rest[2:end]) {
				return "", bad
			}
			rest = rest[end+2:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 2 || strings.Trim(rest[1:end], "0123456789") != "" {
				return "", bad
			}
			b.WriteString(rest[:end+1])
			rest = rest[end+1:]
		default:
			return "", bad
		}
	}
	return b.String(), nil
}

// fromJSON is from_json with a schema that stands in the text. A field whose value
// is of another type is NULL, as it is to Spark.
func fromJSON(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, fault.New("NOT_SUPPORTED", "from_json takes a text and a schema; options are not supported").
			WithHint("Read the field as STRING and use to_date or to_timestamp with a pattern")
	}
	text, err := constantArgument(name, args[1])
	if err != nil {
		return true, err
	}
	dt, err := jsonSchema(text)
	if err != nil {
		return true, fault.New("INVALID_SCHEMA", "the schema %q of from_json cannot be read: %s", text, err)
	}
	value, err := readJSON(dt, "__1", 0)
	if err != nil {
		return true, err
	}
	empty, err := nothing(dt)
	if err != nil {
		return true, err
	}
	// A text that is no JSON gives a struct of NULLs, like one without the fields.
	template := fmt.Sprintf("CASE WHEN json_valid(__1) THEN %s WHEN trim(__1, e' \\t\\n\\r') <> '' THEN %s END", value, empty)
	return true, r.wait(n, name+text, args[:1], ctx, signed(name, "s", template))
}

// jsonSchema reads 'a INT, b STRING' and 'ARRAY<INT>'.
func jsonSchema(text string) (arrow.DataType, error) {
	if dt, err := coltype.Parse(text); err == nil {
		return dt, nil
	}
	fields, err := coltype.ParseDDL(text)
	if err != nil {
		return nil, err
	}
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = f.Arrow()
	}
	return arrow.StructOf(out...), nil
}

// nothing is what a text that is no JSON gives: NULLs in the fields of a struct.
func nothing(dt arrow.DataType) (string, error) {
	name, err := duckType(dt)
	if err != nil {
		return "", err
	}
	st, ok := dt.(*arrow.StructType)
	if !ok {
		return fmt.Sprintf("CAST(NULL AS %s)", name), nil
	}
	fields := make([]string, st.NumFields())
	for i, f := range st.Fields() {
		part, err := duckType(f.Type)
		if err != nil {
			return "", err
		}
		fields[i] = fmt.Sprintf("%s := CAST(NULL AS %s)", quoteName(f.Name), strings.NewReplacer("TIMESTAMP_NTZ", "TIMESTAMP", "TIMESTAMP", "TIMESTAMPTZ").Replace(part))
	}
	return "struct_pack(" + strings.Join(fields, ", ") + ")", nil
}

// readJSON gives the SQL that reads a JSON value as the type; NULL when it is another.
func readJSON(dt arrow.DataType, json string, depth int) (string, error) {
	raw := "json_extract_string(" + json + ", '$')"
	kind := "json_type(" + json + ")"
	number := func(to string) string {
		return fmt.Sprintf("CASE WHEN %s IN ('BIGINT', 'UBIGINT', 'HUGEINT') THEN TRY_CAST(%s AS %s) END", kind, raw, to)
	}
	v := fmt.Sprintf("%s_%d", partName, depth)
	switch t := dt.(type) {
	case *arrow.StringType:
		return fmt.Sprintf("CASE WHEN %s <> 'NULL' THEN %s END", kind, raw), nil
	case *arrow.BooleanType:
		return fmt.Sprintf("CASE WHEN %s = 'BOOLEAN' THEN CAST(%s AS BOOLEAN) END", kind, raw), nil
	case *arrow.Int8Type:
		return number("TINYINT"), nil
	case *arrow.Int16Type:
		return number("SMALLINT"), nil
	case *arrow.Int32Type:
		return number("INTEGER"), nil
	case *arrow.Int64Type:
		return number("BIGINT"), nil
	case *arrow.Float32Type:
		return fmt.Sprintf("CASE WHEN %s IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE') OR %s = 'VARCHAR' AND %s IN ('NaN', 'Infinity', '-Infinity', 'INF', '-INF') THEN TRY_CAST(%s AS FLOAT) END", kind, kind, raw, raw), nil
	case *arrow.Float64Type:
		return fmt.Sprintf("CASE WHEN %s IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE') OR %s = 'VARCHAR' AND %s IN ('NaN', 'Infinity', '-Infinity', 'INF', '-INF') THEN TRY_CAST(%s AS DOUBLE) END", kind, kind, raw, raw), nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("CASE WHEN %s IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE', 'VARCHAR') THEN TRY_CAST(%s AS DECIMAL(%d,%d)) END", kind, raw, t.Precision, t.Scale), nil
	case *arrow.Date32Type:
		return fmt.Sprintf("CASE WHEN %s = 'VARCHAR' AND regexp_matches(%s, '^[0-9]{4}-[0-9]{2}-[0-9]{2}$') THEN TRY_CAST(%s AS DATE) END", kind, raw, raw), nil
	case *arrow.TimestampType:
		to, zone := "TIMESTAMPTZ", "(?:Z|[+-][0-9]{2}:[0-9]{2})?"
		if t.TimeZone == "" {
			to, zone = "TIMESTAMP", ""
		}
		return fmt.Sprintf("CASE WHEN %s = 'VARCHAR' AND regexp_matches(%s, '^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,6})?%s)?$') THEN TRY_CAST(%s AS %s) END", kind, raw, zone, raw, to), nil
	case *arrow.ListType:
		elem, err := readJSON(t.Elem(), v, depth+1)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("CASE WHEN %s = 'ARRAY' THEN list_transform(json_extract(%s, '$[*]'), lambda %s: %s) END", kind, json, v, elem), nil
	case *arrow.MapType:
		if t.KeyType().ID() != arrow.STRING {
			return "", fault.New("INVALID_SCHEMA", "the keys of a JSON object are texts")
		}
		item, err := readJSON(t.ItemType(), v, depth+1)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("CASE WHEN %s = 'OBJECT' THEN map(json_keys(%s), list_transform(json_extract(%s, '$.*'), lambda %s: %s)) END", kind, json, json, v, item), nil
	case *arrow.StructType:
		fields := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			if strings.ContainsAny(f.Name, `"\*`) {
				return "", fault.New("INVALID_SCHEMA", "the field %q cannot be read", f.Name)
			}
			part, err := readJSON(f.Type, fmt.Sprintf("json_extract(%s, %s)", json, quoteText(`$."`+f.Name+`"`)), depth+1)
			if err != nil {
				return "", err
			}
			fields[i] = quoteName(f.Name) + " := " + part
		}
		pack := "struct_pack(" + strings.Join(fields, ", ") + ")"
		if depth == 0 {
			null, err := nothing(t)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("CASE WHEN %s = 'OBJECT' THEN %s WHEN %s = 'ARRAY' THEN error('[NOT_SUPPORTED] from_json meets a list where the schema has a struct') ELSE %s END", kind, pack, kind, null), nil
		}
		return fmt.Sprintf("CASE WHEN %s = 'OBJECT' THEN %s END", kind, pack), nil
	}
	return "", fault.New("INVALID_SCHEMA", "from_json does not read %s", dt)
}

// toJSON writes a struct, list or map; a field that is NULL is left out.
func toJSON(name string, types []sqlType, args []map[string]any) (node, error) {
	if len(args) != 1 {
		return nil, fault.New("NOT_SUPPORTED", "to_json takes one value; options are not supported")
	}
	switch types[0].id {
	case "STRUCT", "LIST", "MAP":
		sql, err := writeJSON(types[0], "__1", 0)
		if err != nil {
			return nil, err
		}
		return fill(sql, args[0])
	}
	return nil, mismatch(name, types[0])
}

// writeJSON gives the SQL that writes a value, NULL for NULL.
func writeJSON(t sqlType, value string, depth int) (string, error) {
	v := fmt.Sprintf("%s_%d", partName, depth)
	switch {
	case t.text():
		return "CAST(to_json(" + value + ") AS VARCHAR)", nil
	case t.whole(), t.decimal(), t.id == "BOOLEAN":
		return "CAST(" + value + " AS VARCHAR)", nil
	case t.floating():
		text := strings.ReplaceAll(floatToText, "__1", value)
		return fmt.Sprintf("CASE WHEN isfinite(%s) THEN %s WHEN %s IS NOT NULL THEN '\"' || %s || '\"' END", value, text, value, text), nil
	case t.id == "DATE":
		return "strftime(" + value + `, '"%Y-%m-%d"')`, nil
	case t.id == zonedTime:
		return "strftime(timezone('UTC', " + value + `), '"%Y-%m-%dT%H:%M:%S.%gZ"')`, nil
	case t.id == wallTime:
		return "strftime(" + value + `, '"%Y-%m-%dT%H:%M:%S.%g"')`, nil
	case t.id == "LIST":
		elem, err := writeJSON(t.elem(), v, depth+1)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("'[' || array_to_string(list_transform(%s, lambda %s: coalesce(%s, 'null')), ',') || ']'", value, v, elem), nil
	case t.id == "MAP":
		if !t.fields[0].text() && !t.fields[0].whole() {
			return "", fault.New("NOT_SUPPORTED", "to_json of a map whose keys are %s is not supported", sparkName(t.fields[0].sqlType))
		}
		item, err := writeJSON(t.fields[1].sqlType, v+".value", depth+1)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("'{' || array_to_string(list_transform(map_entries(%s), lambda %s: CAST(to_json(CAST(%s.key AS VARCHAR)) AS VARCHAR) || ':' || coalesce(%s, 'null')), ',') || '}'", value, v, v, item), nil
	case t.id == "STRUCT":
		if len(t.fields) == 0 {
			return "", mismatch("to_json", t)
		}
		parts := make([]string, len(t.fields))
		for i, f := range t.fields {
			field, err := writeJSON(f.sqlType, fmt.Sprintf("struct_extract_at(%s, %d)", value, i+1), depth)
			if err != nil {
				return "", err
			}
			parts[i] = quoteText(fmt.Sprintf("%q:", f.name)) + " || " + field
		}
		return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN '{' || concat_ws(',', %s) || '}' END", value, strings.Join(parts, ", ")), nil
	case t.null():
		return "CAST(NULL AS VARCHAR)", nil
	}
	return "", fault.New("NOT_SUPPORTED", "to_json of %s is not supported", sparkName(t)).WithHint("CAST it to STRING")
}
