package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// castFunctions are the types that are functions, too.
var castFunctions = map[string]sqlType{
	"string": {id: "VARCHAR"}, "boolean": {id: "BOOLEAN"}, "tinyint": {id: "TINYINT"}, "smallint": {id: "SMALLINT"}, "int": {id: "INTEGER"},
	"bigint": {id: "BIGINT"}, "float": {id: "FLOAT"}, "double": {id: "DOUBLE"}, "binary": {id: "BLOB"}, "date": {id: "DATE"}, "timestamp": {id: zonedTime},
	"decimal": {id: "DECIMAL", width: 10},
}

// operators are the functions that are written between their arguments.
var operators = map[string]string{"+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "//": "//", "divide": "/", "mod": "%", "add": "+", "subtract": "-", "multiply": "*"}

// typedFunction gives a function of Spark its meaning, now or when the types are
// known; false when Spark has none of that name.
func (r *rewriter) typedFunction(n node, name string, args []any, ctx place) (bool, error) {
	if op, ok := operators[name]; ok && len(args) == 2 {
		return true, r.wait(n, op, args, ctx, arithmetic(op))
	}
	if to, ok := castFunctions[name]; ok && len(args) == 1 {
		return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) { return cast(args[0], types[0], to, false) })
	}
	if make, ok := specials[name]; ok {
		return make(r, n, name, args, ctx)
	}
	return r.sparkFunction(n, name, args, ctx)
}

// special is a function whose meaning no template says. It returns false to leave
// the function as it is.
type special func(r *rewriter, n node, name string, args []any, ctx place) (bool, error)

var specials map[string]special

func init() {
	specials = map[string]special{
		"||": concatenation, "concat": concatenation, "concat_ws": joinTexts, "reverse": byType(reversed), "repeat": byType(repeated),
		"element_at": byType(elementAt), "try_element_at": byType(tryElementAt), "size": byType(size), "cardinality": byType(size),
		"length": byType(length), "char_length": byType(length), "character_length": byType(length), "len": byType(length),
		"octet_length": byType(octets), "bit_length": byType(octets), "hex": byType(hexOf),
		"round": byType(rounded), "bround": byType(rounded), "ceil": byType(ceiling), "ceiling": byType(ceiling), "floor": byType(ceiling),
		"typeof": byType(typeNamed), "abs": byType(absolute), "sign": byType(signOf), "negative": byType(negative), "pmod": byType(pmod),
		"try_add": try("+"), "try_subtract": try("-"), "try_multiply": try("*"), "try_divide": try("/"), "try_mod": try("%"),
		"date_format": dateFormat, "from_unixtime": dateFormat, "to_date": dateParse, "to_timestamp": dateParse, "try_to_timestamp": dateParse,
		"unix_timestamp": dateParse, "to_unix_timestamp": dateParse, "date_trunc": dateTrunc, "trunc": dateTrunc, "next_day": nextDay,
		"date_part": datePart, "datepart": datePart, "extract": datePart, "timestampadd": timeAdd, "dateadd": timeAdd, "date_add": timeAdd,
		"timestampdiff": timeDiff, "datediff": timeDiff, "date_diff": timeDiff, "from_utc_timestamp": zoned, "to_utc_timestamp": zoned,
		"timestamp_seconds": byType(fromSeconds), "months_between": monthsApart,
		"rlike": regex, "regexp": regex, "regexp_like": regex, "regexp_replace": regex, "regexp_extract": regex, "regexp_extract_all": regex,
		"regexp_count": regex, "regexp_substr": regex, "split": regex, "regexp_full_match": regex, "regexp_matches": regex,
		"~~": like, "!~~": like, "~~*": like, "!~~*": like, "xor_": nil,
		"get_json_object": jsonObject, "from_json": fromJSON, "to_json": byType(toJSON),
		"map": mapOf, "named_struct": namedStruct, "decode": decodeOf, "encode": encodeOf, "sha2": sha2, "elt": elt, "sort_array": sortArray,
		"arrays_zip": arraysZip, "sequence": sequence, "substring_index": substringIndex, "format_number": formatNumber,
		"printf": formatString, "format_string": formatString, "array": listOf, "list_value": nil, "str_to_map": nil,
		"transform": higher, "filter": higher, "exists": higher, "forall": higher, "aggregate": higher, "reduce": higher, "zip_with": higher,
		"map_filter": higher, "transform_keys": higher, "transform_values": higher, "array_sort": higher,
		"assert_true": nil, "url_encode": nil, "url_decode": nil,
	}
	for name, s := range specials {
		if s == nil {
			delete(specials, name)
		}
	}
}

// byType waits for the types and hands them over with the name.
func byType(make func(name string, types []sqlType, args []map[string]any) (node, error)) special {
	return func(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
		if len(args) == 0 {
			return false, nil
		}
		return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) { return make(name, types, args) })
	}
}

// try is an operator whose errors are NULL.
func try(op string) special {
	return func(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
		if len(args) != 2 {
			return false, nil
		}
		return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) {
			out, err := arithmetic(op)(types, args)
			if err != nil {
				return nil, err
			}
			if op == "/" || op == "%" {
				return fill("CASE WHEN __2 <> 0 THEN __1 END", map[string]any(out), args[1])
			}
			return fill("TRY(__1)", out)
		})
	}
}

func mismatch(name string, t sqlType) error {
	return fault.New("DATATYPE_MISMATCH", "%s does not take %s", name, sparkName(t))
}

func arity(name string, args int) error {
	return fault.New("WRONG_NUM_ARGS", "%s does not take %d arguments", name, args)
}

func constantArgument(name string, arg any) (string, error) {
	if text, ok := constantText(arg.(map[string]any)); ok {
		return text, nil
	}
	return "", fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant text here", name)
}

// constantWhole gives a whole number that stands in the text.
func constantWhole(n node) (int, bool) {
	i, err := strconv.Atoi(wholeText(n))
	return i, err == nil
}

// concatenation is Spark's concat and ||: NULL when any part is NULL, where
// DuckDB's concat leaves it out; over lists, one list.
func concatenation(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) == 0 {
		n.become(textConstant(""))
		return true, nil
	}
	return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) {
		lists := false
		for _, t := range types {
			lists = lists || t.id == "LIST"
		}
		var out map[string]any
		for i, a := range args {
			switch {
			case lists && types[i].id != "LIST" && !types[i].null():
				return nil, mismatch(name, types[i])
			case !lists && types[i].id == "BLOB":
				return nil, fault.New("NOT_SUPPORTED", "%s of BINARY is not supported", name).WithHint("CAST it to STRING")
			case !lists:
				coerced, err := coerce(name, "s", types[i:i+1], []map[string]any{a})
				if err != nil {
					return nil, err
				}
				a = coerced[0].(map[string]any)
			}
			var err error
			switch {
			case out == nil:
				out = a
			case lists:
				out, err = fill("CASE WHEN __1 IS NOT NULL AND __2 IS NOT NULL THEN list_concat(__1, __2) END", out, a)
			default:
				out = callOperator("||", out, a)
			}
			if err != nil {
				return nil, err
			}
		}
		if !lists {
			return fill("CAST(__1 AS VARCHAR)", out) // a constant NULL has no type of its own
		}
		return out, nil
	})
}

// joinTexts is concat_ws, which leaves NULL out and takes lists of texts, too.
func joinTexts(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) == 0 {
		return false, nil
	}
	return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) {
		parts := []any{}
		lists := false
		for _, t := range types[1:] {
			lists = lists || t.id == "LIST"
		}
		for i, a := range args {
			if types[i].id == "LIST" && i > 0 {
				parts = append(parts, a)
				continue
			}
			coerced, err := coerce(name, "s", types[i:i+1], []map[string]any{a})
			if err != nil {
				return nil, err
			}
			part := coerced[0].(map[string]any)
			if lists && i > 0 {
				if part, err = fill("list_value(__1)", part); err != nil {
					return nil, err
				}
			}
			parts = append(parts, part)
		}
		if len(parts) == 1 {
			return fill("CASE WHEN __1 IS NOT NULL THEN '' END", parts...)
		}
		if !lists {
			return callNode("concat_ws", parts...), nil
		}
		return fill("coalesce(array_to_string(list_filter(__1, lambda e: e IS NOT NULL), __2), CASE WHEN __2 IS NOT NULL THEN '' END)", callNode("list_concat", parts[1:]...), parts[0].(map[string]any))
	})
}

func reversed(name string, types []sqlType, args []map[string]any) (node, error) {
	if types[0].id == "LIST" {
		return fill("list_reverse(__1)", args...)
	}
	coerced, err := coerce(name, "s", types, args)
	if err != nil {
		return nil, err
	}
	return fill("reverse(__1)", coerced...)
}

func repeated(name string, types []sqlType, args []map[string]any) (node, error) {
	if len(args) != 2 {
		return nil, arity(name, len(args))
	}
	if types[0].id == "LIST" {
		return fill("repeat(__1, __2)", args...) // DuckDB's own
	}
	return signed(name, "si", "repeat(__1, CASE WHEN __2 < 0 THEN 0 ELSE __2 END)")(types, args)
}

const badIndex = "error('[INVALID_ARRAY_INDEX] The list has no element there. Use get() to tolerate it and return NULL instead')"

// indexed is x[i]: an element counted from 0, or the value of a key.
func indexed(types []sqlType, args []map[string]any) (node, error) {
	switch t := types[0]; t.id {
	case "LIST":
		if !implicit(types[1], sqlType{id: "BIGINT"}) || types[1].text() {
			return nil, mismatch("x[i]", types[1])
		}
		return fill("CASE WHEN __2 < 0 OR __2 >= len(__1) THEN "+badIndex+" ELSE list_extract(__1, __2 + 1) END", args...)
	case "MAP":
		return mapValue(t, types[1], args)
	case "STRUCT":
		return fill("struct_extract(__1, __2)", args...)
	}
	return nil, fault.New("INVALID_EXTRACT_BASE_FIELD_TYPE", "%s has no elements to take out", sparkName(types[0]))
}

func mapValue(t, key sqlType, args []map[string]any) (node, error) {
	k, err := cast(args[1], key, t.fields[0].sqlType, false)
	if err != nil {
		return nil, err
	}
	return fill("map_extract_value(__1, __2)", args[0], k)
}

func elementAt(name string, types []sqlType, args []map[string]any) (node, error) {
	if len(args) != 2 {
		return nil, arity(name, len(args))
	}
	switch t := types[0]; t.id {
	case "LIST":
		return fill("CASE WHEN __2 = 0 THEN error('[INVALID_INDEX_OF_ZERO] The index 0 is invalid') WHEN abs(__2) > len(__1) THEN "+
			strings.ReplaceAll(badIndex, "INVALID_ARRAY_INDEX", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT")+" ELSE list_extract(__1, __2) END", args...)
	case "MAP":
		return mapValue(t, types[1], args)
	}
	return nil, mismatch(name, types[0])
}

func tryElementAt(name string, types []sqlType, args []map[string]any) (node, error) {
	if len(args) != 2 {
		return nil, arity(name, len(args))
	}
	switch t := types[0]; t.id {
	case "LIST":
		return fill("CASE WHEN __2 = 0 THEN error('[INVALID_INDEX_OF_ZERO] The index 0 is invalid') ELSE list_extract(__1, __2) END", args...)
	case "MAP":
		return mapValue(t, types[1], args)
	}
	return nil, mismatch(name, types[0])
}

func size(name string, types []sqlType, args []map[string]any) (node, error) {
	if len(args) != 1 {
		return nil, arity(name, len(args))
	}
	switch types[0].id {
	case "LIST":
		return fill("CAST(len(__1) AS INTEGER)", args...)
	case "MAP":
		return fill("CAST(len(map_keys(__1)) AS INTEGER)", args...)
	}
	return nil, mismatch(name, types[0])
}

func length(name string, types []sqlType, args []map[string]any) (node, error) {
	if types[0].id == "LIST" && name == "len" {
		return fill("len(__1)", args...)
	}
	if types[0].id == "BLOB" {
		return fill("CAST(octet_length(__1) AS INTEGER)", args...)
	}
	coerced, err := coerce(name, "s", types, args)
	if err != nil {
		return nil, err
	}
	return fill("CAST(length(__1) AS INTEGER)", coerced...)
}

func octets(name string, types []sqlType, args []map[string]any) (node, error) {
	bits := ""
	if name == "bit_length" {
		bits = " * 8"
	}
	if types[0].id == "BLOB" {
		return fill("CAST(octet_length(__1)"+bits+" AS INTEGER)", args...)
	}
	coerced, err := coerce(name, "s", types, args)
	if err != nil {
		return nil, err
	}
	return fill("CAST(strlen(__1)"+bits+" AS INTEGER)", coerced...)
}

func hexOf(name string, types []sqlType, args []map[string]any) (node, error) {
	switch t := types[0]; {
	case t.whole():
		return fill("CASE WHEN __1 < 0 THEN hex(CAST(CAST(__1 AS HUGEINT) + 18446744073709551616 AS UBIGINT)) ELSE hex(CAST(__1 AS BIGINT)) END", args...)
	case t.id == "BLOB", t.text():
		return fill("hex(__1)", args...)
	}
	return nil, mismatch(name, types[0])
}

// rounded is round, half away from zero, and bround, half to even. A floating
// number is rounded as it is written, not as it is stored.
func rounded(name string, types []sqlType, args []map[string]any) (node, error) {
	digits := 0
	if len(args) > 2 {
		return nil, arity(name, len(args))
	}
	if len(args) == 2 {
		var ok bool
		if digits, ok = constantWhole(args[1]); !ok {
			return nil, fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant number of digits", name)
		}
	}
	if digits < -30 || digits > 30 {
		return nil, fault.New("NOT_SUPPORTED", "%s to %d digits is not supported", name, digits)
	}
	t := types[0]
	if t.text() {
		var err error
		if args[0], err = cast(args[0], t, sqlType{id: "DOUBLE"}, false); err != nil {
			return nil, err
		}
		t = sqlType{id: "DOUBLE"}
	}
	even := "round"
	if name == "bround" {
		even = "round_even"
	}
	switch {
	case t.whole():
		if digits >= 0 {
			return args[0], nil
		}
		if name == "bround" {
			return nil, fault.New("NOT_SUPPORTED", "bround of whole numbers is not supported").WithHint("CAST to DECIMAL")
		}
		return fill(fmt.Sprintf("CAST(round(CAST(__1 AS DECIMAL(38,0)), %d) AS %s)", digits, t), args[0])
	case t.decimal():
		return roundDecimal(name, t, digits, args[0])
	case t.floating():
		if name == "bround" {
			return fill(fmt.Sprintf("CAST(%s(CAST(__1 AS DOUBLE), %d) AS %s)", even, digits, t), args[0])
		}
		if digits < 0 {
			return fill(fmt.Sprintf("CASE WHEN abs(__1) < 1e15 THEN CAST(round(CAST(CAST(CAST(__1 AS DOUBLE) AS VARCHAR) AS DECIMAL(38,20)), %d) AS %s) ELSE round(__1, %d) END", digits, t, digits), args[0])
		}
		return fill(fmt.Sprintf("CASE WHEN abs(__1) < 1e%d THEN CAST(CAST(CAST(CAST(__1 AS DOUBLE) AS VARCHAR) AS DECIMAL(38,%d)) AS %s) ELSE __1 END", min(15, 37-digits), digits, t), args[0])
	case t.null():
		return fill("CAST(__1 AS DOUBLE)", args[0])
	}
	return nil, mismatch(name, types[0])
}

func roundDecimal(name string, t sqlType, digits int, value map[string]any) (node, error) {
	whole := t.width - t.scale + 1
	if digits >= t.scale {
		return fill(fmt.Sprintf("CAST(__1 AS %s)", fitted(whole+t.scale, t.scale)), value)
	}
	to := fitted(whole+max(digits, 0), max(digits, 0))
	if digits < 0 {
		to = sqlType{id: "DECIMAL", width: min(max(whole, -digits+1), maxDigits)}
		if name == "bround" {
			return nil, fault.New("NOT_SUPPORTED", "bround to tens is not supported")
		}
		return fill(fmt.Sprintf("CAST(round(__1, %d) AS %s)", digits, to), value)
	}
	if name == "round" {
		return fill(fmt.Sprintf("CAST(__1 AS %s)", to), value)
	}
	units, err := unscale(t, value, t.scale)
	if err != nil {
		return nil, err
	}
	step, err := fill(fmt.Sprintf("CAST('1%s' AS HUGEINT)", strings.Repeat("0", t.scale-to.scale)), value)
	if err != nil {
		return nil, err
	}
	half, err := fill(`__1 // __2 + CASE WHEN abs(__1 % __2) * 2 > __2 OR abs(__1 % __2) * 2 = __2 AND (__1 // __2) % 2 <> 0 THEN CASE WHEN __1 < 0 THEN -1 ELSE 1 END ELSE 0 END`, units, step)
	if err != nil {
		return nil, err
	}
	return scaleDown(half, to)
}

// ceiling is ceil and floor.
func ceiling(name string, types []sqlType, args []map[string]any) (node, error) {
	how := strings.TrimSuffix(strings.Replace(name, "ceiling", "ceil", 1), "ing")
	t := types[0]
	if len(args) == 2 {
		digits, ok := constantWhole(args[1])
		if !ok || !t.decimal() || digits < 0 || digits > t.scale {
			return nil, fault.New("NOT_SUPPORTED", "%s with digits takes a DECIMAL and a constant from 0", name)
		}
		to := fitted(t.width-t.scale+1+digits, digits)
		shift := strings.Repeat("0", digits)
		if t.width+digits > maxDigits {
			return nil, fault.New("NOT_SUPPORTED", "%s of %s to %d digits is not supported", name, t, digits)
		}
		units, err := fill(fmt.Sprintf("CAST(%s(CAST(__1 AS DECIMAL(%d,%d)) * CAST('1%s' AS DECIMAL(%d,0))) AS HUGEINT)", how, max(t.width, longDigits), t.scale, shift, digits+1), args[0])
		if err != nil {
			return nil, err
		}
		return scaleDown(units, to)
	}
	switch {
	case len(args) != 1:
		return nil, arity(name, len(args))
	case t.whole():
		return fill("CAST(__1 AS BIGINT)", args[0])
	case t.decimal():
		return fill(fmt.Sprintf("CAST(%s(__1) AS %s)", how, sqlType{id: "DECIMAL", width: min(t.width-t.scale+1, maxDigits)}), args[0])
	}
	coerced, err := coerce(name, "f", types, args)
	if err != nil {
		return nil, err
	}
	return fill(fmt.Sprintf("CAST(%s(__1) AS BIGINT)", how), coerced...)
}

func absolute(name string, types []sqlType, args []map[string]any) (node, error) {
	if t := types[0]; !t.text() && !t.null() {
		return fill("abs(__1)", args...)
	}
	coerced, err := coerce(name, "f", types, args)
	if err != nil {
		return nil, err
	}
	return fill("abs(__1)", coerced...)
}

func signOf(name string, types []sqlType, args []map[string]any) (node, error) {
	coerced, err := coerce(name, "f", types, args)
	if err != nil {
		return nil, err
	}
	return fill("CAST(sign(__1) AS DOUBLE)", coerced...)
}

func negative(_ string, _ []sqlType, args []map[string]any) (node, error) {
	return fill("-__1", args[0])
}

func pmod(name string, types []sqlType, args []map[string]any) (node, error) {
	if len(args) != 2 {
		return nil, arity(name, len(args))
	}
	rest, err := arithmetic("%")(types, args)
	if err != nil {
		return nil, err
	}
	moved, err := fill("(__1 + __2) % __2", map[string]any(rest), args[1])
	if err != nil {
		return nil, err
	}
	if t := types[0]; t.whole() {
		wide := t
		if wholeWidths[types[1].id] > wholeWidths[t.id] {
			wide = types[1]
		}
		moved, err = fill(fmt.Sprintf("CAST(__1 AS %s)", wide), moved)
	} else if t.decimal() || types[1].decimal() {
		return nil, fault.New("NOT_SUPPORTED", "pmod of decimals is not supported").WithHint("CAST to DOUBLE, or use %%")
	}
	if err != nil {
		return nil, err
	}
	return fill("CASE WHEN __1 < 0 THEN __2 ELSE __1 END", map[string]any(rest), moved)
}

// typeNamed is typeof, in Spark's words.
func typeNamed(name string, types []sqlType, args []map[string]any) (node, error) {
	return textConstant(simpleName(types[0])), nil
}

// simpleName is Spark's simple string of a type.
func simpleName(t sqlType) string {
	switch t.id {
	case "LIST":
		return "array<" + simpleName(t.elem()) + ">"
	case "MAP":
		return "map<" + simpleName(t.fields[0].sqlType) + "," + simpleName(t.fields[1].sqlType) + ">"
	case "STRUCT":
		fields := make([]string, len(t.fields))
		for i, f := range t.fields {
			fields[i] = f.name + ":" + simpleName(f.sqlType)
		}
		return "struct<" + strings.Join(fields, ",") + ">"
	case "NULL", "":
		return "void"
	}
	return strings.ToLower(sparkName(t))
}
