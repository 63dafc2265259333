package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// String writes a type as DuckDB does.
func (t sqlType) String() string {
	switch t.id {
	case "DECIMAL":
		return fmt.Sprintf("DECIMAL(%d,%d)", t.width, t.scale)
	case "LIST":
		return t.elem().String() + "[]"
	case "MAP":
		return "MAP(" + t.fields[0].String() + ", " + t.fields[1].String() + ")"
	case "STRUCT":
		fields := make([]string, len(t.fields))
		for i, f := range t.fields {
			fields[i] = quoteName(f.name) + " " + f.String()
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")"
	}
	return t.id
}

// wholeWidths are the digits of the integers, as Spark counts them.
var wholeWidths = map[string]int{"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 20}

func (t sqlType) whole() bool    { return wholeWidths[t.id] > 0 }
func (t sqlType) floating() bool { return t.id == "DOUBLE" || t.id == "FLOAT" }
func (t sqlType) decimal() bool  { return t.id == "DECIMAL" }
func (t sqlType) text() bool     { return t.id == "VARCHAR" }
func (t sqlType) null() bool     { return t.id == "NULL" || t.id == "" }
func (t sqlType) dated() bool    { return t.id == "DATE" || strings.HasPrefix(t.id, "TIMESTAMP") }

const (
	zonedTime = "TIMESTAMP WITH TIME ZONE"
	wallTime  = "TIMESTAMP"
)

// What a text must look like to be of a type, and how it is read. The texts that
// come most often are told without a regular expression. A text that is none gives
// the empty text, which no cast takes.
const (
	textToWhole = `CAST(regexp_extract(__1, '^[\s\x00-\x1f]*([+-]?[0-9]+)[\s\x00-\x1f]*$', 1) AS %s)`
	textToFloat = `CAST(CASE WHEN contains(__1, '_') THEN '' ELSE trim(__1, e' \t\n\r') END AS %s)`
	textToDate  = `CASE WHEN __1 LIKE '____-__-__' THEN CAST(__1 AS DATE)
		ELSE CAST(regexp_extract(__1, '^\s*([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})(?:[ T](?s:.*))?\s*$', 1) AS DATE) END`
	textToTime = `CASE WHEN __1 LIKE '____-__-__ __:__:__' AND __1 NOT LIKE '%% 24:%%' THEN CAST(__1 AS %[1]s)
		ELSE CAST(regexp_extract(__1, '^\s*([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[ T](?:[01]?[0-9]|2[0-3]):[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{1,9})?)?%[2]s)?)\s*$', 1) AS %[1]s) END`
	zoneText   = `(?:\s?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?`
	textToBool = `CASE lower(trim(__1, e' \t\n\r')) WHEN 'true' THEN true WHEN 't' THEN true WHEN 'yes' THEN true WHEN 'y' THEN true WHEN '1' THEN true
		WHEN 'false' THEN false WHEN 'f' THEN false WHEN 'no' THEN false WHEN 'n' THEN false WHEN '0' THEN false
		ELSE CASE WHEN __1 IS NOT NULL THEN CAST('' AS BOOLEAN) END END`
)

// floatToText is Java's way to write a number: 1.0E7 and 1.0E-4, plain in between.
const floatToText = `CASE WHEN __1 = 0 OR abs(__1) >= 0.001 AND abs(__1) < 10000000 THEN CAST(__1 AS VARCHAR)
	WHEN isnan(__1) THEN 'NaN' WHEN isinf(__1) THEN CASE WHEN __1 > 0 THEN 'Infinity' ELSE '-Infinity' END
	ELSE CASE WHEN __1 < 0 THEN '-' ELSE '' END || CASE
	WHEN contains(CAST(abs(__1) AS VARCHAR), 'e') THEN split_part(CAST(abs(__1) AS VARCHAR), 'e', 1)
		|| CASE WHEN contains(split_part(CAST(abs(__1) AS VARCHAR), 'e', 1), '.') THEN '' ELSE '.0' END
		|| 'E' || CAST(split_part(CAST(abs(__1) AS VARCHAR), 'e', 2) AS INTEGER)
	WHEN abs(__1) > 1 THEN substring(CAST(abs(__1) AS VARCHAR), 1, 1) || '.'
		|| coalesce(nullif(substring(rtrim(replace(CAST(abs(__1) AS VARCHAR), '.', ''), '0'), 2), ''), '0')
		|| 'E' || (strpos(CAST(abs(__1) AS VARCHAR), '.') - 2)
	ELSE substring(ltrim(split_part(CAST(abs(__1) AS VARCHAR), '.', 2), '0'), 1, 1) || '.'
		|| coalesce(nullif(substring(ltrim(split_part(CAST(abs(__1) AS VARCHAR), '.', 2), '0'), 2), ''), '0')
		|| 'E-' || (length(split_part(CAST(abs(__1) AS VARCHAR), '.', 2)) - length(ltrim(split_part(CAST(abs(__1) AS VARCHAR), '.', 2), '0')) + 1) END END`

// cast gives CAST(value AS to), or TRY_CAST, with Spark's meaning. A value of the
// type comes back as it is.
func cast(value map[string]any, from, to sqlType, try bool) (map[string]any, error) {
	if from.equal(to) {
		return value, nil
	}
	template, err := castTemplate(from, to)
	if err != nil {
		return nil, err
	}
	if template == "" {
		return castParts(value, from, to, try)
	}
	if try {
		template = strings.ReplaceAll(template, " CAST(", " TRY_CAST(")
		if strings.HasPrefix(template, "CAST(") {
			template = "TRY_" + template
		}
	}
	return fill(template, value)
}

// castTemplate gives the text of a cast between types without parts, "" for others.
func castTemplate(from, to sqlType) (string, error) {
	plain := fmt.Sprintf("CAST(__1 AS %s)", to)
	number := from.whole() || from.floating() || from.decimal() || from.id == "BOOLEAN"
	switch {
	case from.null(), from.id == "HUGEINT", from.id == "OTHER":
		return plain, nil
	case len(to.fields) > 0:
		return "", nil
	case to.whole(), to.id == "HUGEINT", to.id == "UTINYINT", to.id == "USMALLINT", to.id == "UINTEGER", to.id == "UBIGINT":
		switch {
		case from.whole(), from.id == "BOOLEAN", strings.HasPrefix(from.id, "U"):
			return plain, nil
		case from.floating():
			return fmt.Sprintf("CAST(trunc(CAST(__1 AS DOUBLE)) AS %s)", to), nil
		case from.decimal():
			return fmt.Sprintf("CAST(trunc(__1) AS %s)", to), nil
		case from.text():
			return fmt.Sprintf(textToWhole, to), nil
		case from.id == zonedTime:
			return fmt.Sprintf("CAST(CAST(floor(epoch(__1)) AS BIGINT) AS %s)", to), nil
		}
	case to.floating():
		switch {
		case number, strings.HasPrefix(from.id, "U"):
			return plain, nil
		case from.text():
			return fmt.Sprintf(textToFloat, to), nil
		case from.id == zonedTime:
			return fmt.Sprintf("CAST(epoch(__1) AS %s)", to), nil
		}
	case to.decimal():
		switch {
		case from.floating():
			return fmt.Sprintf("CAST(CAST(CAST(__1 AS DOUBLE) AS VARCHAR) AS %s)", to), nil
		case number, strings.HasPrefix(from.id, "U"):
			return plain, nil
		case from.text():
			return fmt.Sprintf(textToFloat, to), nil
		}
	case to.id == "BOOLEAN":
		switch {
		case from.whole(), from.floating(), from.decimal():
			return "__1 <> 0", nil
		case from.text():
			return textToBool, nil
		}
	case to.text():
		switch {
		case from.floating():
			return floatToText, nil
		case from.id == zonedTime:
			return "CAST(CAST(__1 AS TIMESTAMP) AS VARCHAR)", nil
		case from.id == "BLOB":
			return "decode(__1)", nil
		case number, from.dated(), from.id == "UUID", from.id == "TIME", strings.HasPrefix(from.id, "U"):
			return plain, nil
		case from.id == "LIST", from.id == "MAP", from.id == "STRUCT":
			return "", fault.New("UNSUPPORTED_CAST", "a list, struct or map is cast to a text, which Spark writes in its own way").
				WithHint("Write to_json(x), or array_join for a list")
		}
	case to.id == "BLOB" && from.text():
		return "encode(__1)", nil
	case to.id == "DATE":
		switch {
		case from.dated():
			return plain, nil
		case from.text():
			return textToDate, nil
		}
	case to.id == zonedTime:
		switch {
		case from.dated():
			return plain, nil
		case from.text():
			return fmt.Sprintf(textToTime, to, zoneText), nil
		case from.whole():
			return "make_timestamptz(CAST(__1 AS BIGINT) * 1000000)", nil
		case from.floating(), from.decimal():
			return "make_timestamptz(CAST(trunc(CAST(__1 AS DOUBLE) * 1000000) AS BIGINT))", nil
		}
	case to.id == wallTime:
		switch {
		case from.dated():
			return plain, nil
		case from.text():
			return fmt.Sprintf(textToTime, to, ""), nil
		}
	default:
		return plain, nil // types that Spark does not have
	}
	return "", fault.New("CAST_WITHOUT_SUGGESTION", "%s cannot be cast to %s", sparkName(from), sparkName(to))
}

// sparkName names a type in a message.
func sparkName(t sqlType) string {
	switch t.id {
	case "VARCHAR":
		return "STRING"
	case "BLOB":
		return "BINARY"
	case "INTEGER":
		return "INT"
	case zonedTime:
		return "TIMESTAMP"
	case wallTime:
		return "TIMESTAMP_NTZ"
	case "LIST":
		return "ARRAY"
	}
	return t.String()
}

// castParts casts a list, map or struct part by part.
func castParts(value map[string]any, from, to sqlType, try bool) (map[string]any, error) {
	if from.id != to.id || from.id == "STRUCT" && len(from.fields) != len(to.fields) {
		return nil, fault.New("CAST_WITHOUT_SUGGESTION", "%s cannot be cast to %s", sparkName(from), sparkName(to))
	}
	each := func(i int) (map[string]any, error) {
		return cast(columnRef(partName), from.fields[i].sqlType, to.fields[i].sqlType, try)
	}
	switch from.id {
	case "LIST":
		body, err := each(0)
		if err != nil {
			return nil, err
		}
		return fill("list_transform(__1, lambda "+partName+": __2)", value, body)
	case "MAP":
		key, err := each(0)
		if err != nil {
			return nil, err
		}
		item, err := each(1)
		if err != nil {
			return nil, err
		}
		return fill("CASE WHEN __1 IS NOT NULL THEN map(list_transform(map_keys(__1), lambda "+partName+": __2), list_transform(map_values(__1), lambda "+partName+": __3)) END",
			value, key, item)
	}
	fields := make([]any, len(to.fields))
	for i := range to.fields {
		part, err := fill(fmt.Sprintf("struct_extract_at(__1, %d)", i+1), value)
		if err != nil {
			return nil, err
		}
		field, err := cast(part, from.fields[i].sqlType, to.fields[i].sqlType, try)
		if err != nil {
			return nil, err
		}
		field = clone(field).(map[string]any)
		field["alias"] = to.fields[i].name
		fields[i] = field
	}
	return fill("CASE WHEN __1 IS NOT NULL THEN __2 END", value, callNode("struct_pack", fields...))
}

// partName is what a lambda of ours calls its value.
const partName = reservedPrefix + "part"

// castExpression rewrites a CAST whose child is rewritten.
func (r *rewriter) castExpression(n node, ctx place) error {
	target := n.child("cast_type")
	try := n.flag("try_cast")
	to, simple := treeType(target)
	plain := clone(map[string]any(n)).(map[string]any)
	if !simple && !nestedTree(target) {
		return nil // a type of DuckDB's own
	}
	if text, ok := constantText(n.child("child")); ok && to.id == "BOOLEAN" && (text == "t" || text == "f") {
		return nil // true and false
	}
	name := "cast " + fingerprint([]any{target}) + fmt.Sprint(try)
	return r.wait(n, name, []any{n["child"]}, ctx, func(types []sqlType, args []map[string]any) (node, error) {
		if !simple {
			if types[0].null() {
				plain["child"] = args[0]
				return plain, nil
			}
			var err error
			if to, err = nestedType(target); err != nil {
				return nil, err
			}
		}
		out, err := cast(args[0], types[0], to, try)
		if err != nil {
			return nil, err
		}
		if from := types[0]; from.equal(to) {
			// Kept: it gives a constant its type.
			plain["child"], plain["alias"] = args[0], ""
			return plain, nil
		}
		return clone(out).(map[string]any), nil
	})
}

func nestedTree(t node) bool {
	switch t.str("id") {
	case "LIST", "STRUCT", "MAP":
		return true
	}
	return false
}

// nestedType reads the type of a tree.
func nestedType(t node) (sqlType, error) {
	if out, ok := treeType(t); ok {
		return out, nil
	}
	info := t.child("type_info")
	out := sqlType{id: t.str("id")}
	var parts []node
	var names []string
	switch out.id {
	case "LIST":
		parts, names = []node{info.child("child_type")}, []string{""}
	case "MAP":
		inside := info.child("child_type").child("type_info")
		for _, f := range inside.nodes("child_types") {
			parts, names = append(parts, f.child("second")), append(names, f.str("first"))
		}
	case "STRUCT":
		for _, f := range info.nodes("child_types") {
			parts, names = append(parts, f.child("second")), append(names, f.str("first"))
		}
	default:
		return out, fault.New("NOT_SUPPORTED", "a CAST to a type that holds %s is not supported", strings.ToLower(out.id))
	}
	for i, p := range parts {
		part, err := nestedType(p)
		if err != nil {
			return out, err
		}
		out.fields = append(out.fields, sqlField{names[i], part})
	}
	return out, nil
}
