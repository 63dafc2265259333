package sql

import (
	"fmt"
	"strings"
	"sync"

	"github.com/weir-data/weir/host/fault"
)

// sparkFunctions says in DuckDB's SQL what a function of Spark means, by name
// and number of arguments; __1, __2 … stand for the arguments. Where both know
// a name, Spark's meaning counts. What cannot be said exactly is not here: the
// function is then unknown, or DuckDB's.
var sparkFunctions = map[string]string{
	"nvl/2":         "coalesce(__1, __2)",
	"nvl2/3":        "CASE WHEN __1 IS NOT NULL THEN __2 ELSE __3 END",
	"isnull/1":      "__1 IS NULL",
	"isnotnull/1":   "__1 IS NOT NULL",
	"string/1":      "CAST(__1 AS VARCHAR)",
	"double/1":      "CAST(__1 AS DOUBLE)",
	"raise_error/1": "error(__1)",

	"startswith/2":         "starts_with(__1, __2)",
	"endswith/2":           "ends_with(__1, __2)",
	"locate/2":             "instr(__2, __1)",
	"charindex/2":          "instr(__2, __1)",
	"rlike/2":              "regexp_matches(__1, __2)",
	"regexp/2":             "regexp_matches(__1, __2)",
	"regexp_like/2":        "regexp_matches(__1, __2)",
	"regexp_extract/2":     "regexp_extract(__1, __2, 1)",
	"regexp_extract_all/2": "regexp_extract_all(__1, __2, 1)",
	"split/2":              "string_split_regex(__1, __2)",

	"log/1":    "ln(__1)",
	"bround/1": "round_even(__1, 0)",
	"bround/2": "round_even(__1, __2)",

	"explode/1":    "unnest(__1)",
	"size/1":       "len(__1)",
	"array_size/1": "len(__1)",
	"array_join/2": "array_to_string(__1, __2)",
	"sequence/2":   "generate_series(__1, __2)",
	"sort_array/1": "list_sort(__1, 'ASC', 'NULLS FIRST')",

	"get_json_object/2": "CASE WHEN json_valid(__1) THEN json_extract_string(__1, __2) END",

	"to_date/1":           "CAST(__1 AS DATE)",
	"to_timestamp/1":      "CAST(__1 AS TIMESTAMP WITH TIME ZONE)",
	"try_to_timestamp/1":  "TRY_CAST(__1 AS TIMESTAMP WITH TIME ZONE)",
	"dayofweek/1":         "dayofweek(__1) + 1",
	"weekday/1":           "isodow(__1) - 1",
	"date_add/2":          "CAST(__1 AS DATE) + CAST(__2 AS INTEGER)",
	"dateadd/2":           "CAST(__1 AS DATE) + CAST(__2 AS INTEGER)",
	"date_sub/2":          "CAST(__1 AS DATE) - CAST(__2 AS INTEGER)",
	"datediff/2":          "date_diff('day', CAST(__2 AS DATE), CAST(__1 AS DATE))",
	"date_diff/2":         "date_diff('day', CAST(__2 AS DATE), CAST(__1 AS DATE))",
	"add_months/2":        "CAST(CAST(__1 AS DATE) + to_months(CAST(__2 AS INTEGER)) AS DATE)",
	"unix_timestamp/1":    "CAST(floor(epoch(CAST(__1 AS TIMESTAMP WITH TIME ZONE))) AS BIGINT)",
	"unix_millis/1":       "epoch_ms(__1)",
	"unix_micros/1":       "epoch_us(__1)",
	"timestamp_seconds/1": "to_timestamp(__1)",
	"timestamp_millis/1":  "make_timestamptz(CAST(__1 AS BIGINT) * 1000)",
	"timestamp_micros/1":  "make_timestamptz(CAST(__1 AS BIGINT))",
	"from_unixtime/1":     "strftime(to_timestamp(CAST(__1 AS BIGINT)), '%Y-%m-%d %H:%M:%S')",
}

// sparkFormats are the functions whose last argument is a date pattern: __2 is
// the pattern in strftime's spelling.
var sparkFormats = map[string]string{
	"to_date/2":          "CAST(strptime(__1, __2) AS DATE)",
	"to_timestamp/2":     "CAST(strptime(__1, __2) AS TIMESTAMP WITH TIME ZONE)",
	"try_to_timestamp/2": "CAST(try_strptime(__1, __2) AS TIMESTAMP WITH TIME ZONE)",
	"date_format/2":      "strftime(CAST(__1 AS TIMESTAMP WITH TIME ZONE), __2)",
	"from_unixtime/2":    "strftime(to_timestamp(CAST(__1 AS BIGINT)), __2)",
	"unix_timestamp/2":   "CAST(floor(epoch(CAST(strptime(__1, __2) AS TIMESTAMP WITH TIME ZONE))) AS BIGINT)",
}

// otherMeaning are functions that Spark and DuckDB both have and that differ
// where no exact replacement exists.
var otherMeaning = map[string]string{
	"hash":       "Spark's hash and DuckDB's give other numbers: use md5() or sha256()",
	"element_at": "Write m[key] for a map and list[position], counted from 1, for a list",
}

// guardedDivision is a / b, or an error while planning when Spark would give a
// decimal: DuckDB divides decimals as DOUBLE. typeof is a constant once the
// types are known, so nothing of the guard is left in the plan.
const guardedDivision = `CASE WHEN struct_extract({'ok': 1}, CASE
	WHEN typeof(__1) LIKE 'DECIMAL%' AND (typeof(__2) LIKE 'DECIMAL%' OR typeof(__2) LIKE '%INT%')
	  OR typeof(__2) LIKE 'DECIMAL%' AND typeof(__1) LIKE '%INT%'
	THEN '` + decimalDivision + `' ELSE 'ok' END) = 1 THEN __1 / __2 END`

const decimalDivision = "DECIMAL_DIVISION"

// templates holds the parsed trees of the texts above.
var templates sync.Map

// fill gives the template's tree with the arguments in their places.
func fill(template string, args ...any) (node, error) {
	tree, ok := templates.Load(template)
	if !ok {
		statement, _, err := parseSelect("SELECT "+template, newOrigin("", template, 1))
		if err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "the template %s cannot be parsed", template)
		}
		tree = statement.child("node").nodes("select_list")[0]
		templates.Store(template, tree)
	}
	out := clone(tree).(map[string]any)
	return substituteArguments(out, args).(map[string]any), nil
}

// substituteArguments puts the arguments where __1, __2 … stand, and no locations elsewhere.
func substituteArguments(v any, args []any) any {
	switch v := v.(type) {
	case map[string]any:
		if names := node(v).strings("column_names"); len(names) == 1 {
			for i, a := range args {
				if names[0] == fmt.Sprintf("__%d", i+1) {
					return clone(a)
				}
			}
		}
		for k, e := range v {
			if k == "query_location" {
				v[k] = nowhere
				continue
			}
			v[k] = substituteArguments(e, args)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = substituteArguments(e, args)
		}
		return v
	}
	return v
}

// sparkMeaning gives the tree that says a Spark function in DuckDB, or nil.
func sparkMeaning(name string, args []any) (node, error) {
	key := fmt.Sprintf("%s/%d", name, len(args))
	if t, ok := sparkFunctions[key]; ok {
		return fill(t, args...)
	}
	if t, ok := sparkFormats[key]; ok {
		pattern, ok := constantText(args[1].(map[string]any))
		if !ok {
			return nil, fault.New("INVALID_DATETIME_PATTERN", "the pattern of %s is not a constant text", name)
		}
		format, err := strftimeFormat(pattern)
		if err != nil {
			return nil, err
		}
		return fill(t, args[0], textConstant(format))
	}
	switch {
	case name == "concat" && len(args) > 0:
		return concatenation(args)
	case name == "regexp_replace" && len(args) == 3:
		return replaceAll(args)
	}
	return nil, nil
}

// concatenation is Spark's concat: NULL when any part is NULL, which DuckDB's
// concat leaves out in silence.
func concatenation(args []any) (node, error) {
	out := args[0].(map[string]any)
	if len(args) == 1 {
		return fill("__1", out)
	}
	for _, a := range args[1:] {
		n, err := fill("__1 || __2", out, a)
		if err != nil {
			return nil, err
		}
		out = n
	}
	return out, nil
}

// replaceAll is Spark's regexp_replace: every match, groups written $1.
func replaceAll(args []any) (node, error) {
	if with, ok := constantText(args[2].(map[string]any)); ok && strings.ContainsAny(with, `$\`) {
		duck, err := groupReferences(with)
		if err != nil {
			return nil, err
		}
		args[2] = textConstant(duck)
	}
	return fill("regexp_replace(__1, __2, __3, 'g')", args...)
}

// groupReferences turns $1 into \1 and keeps \1, which DuckDB reads alike.
func groupReferences(s string) (string, error) {
	var b strings.Builder
	for i := range len(s) {
		digit := i+1 < len(s) && isDigit(s[i+1])
		switch {
		case (s[i] == '$' || s[i] == '\\') && digit:
			b.WriteByte('\\')
		case s[i] == '$' || s[i] == '\\':
			return "", fault.New("UNSUPPORTED_REPLACEMENT", "the replacement %q of regexp_replace has a %c that starts no group number", s, s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// strftimeFormat turns a Spark date pattern into strftime's, or refuses it by
// the letters that have no equal.
func strftimeFormat(pattern string) (string, error) {
	letters := map[string]string{
		"yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "dd": "%d", "d": "%-d",
		"DDD": "%j", "EEEE": "%A", "EEE": "%a", "EE": "%a", "E": "%a", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I",
		"mm": "%M", "m": "%-M", "ss": "%S", "s": "%-S", "SSS": "%g", "SSSSSS": "%f", "a": "%p",
	}
	var b strings.Builder
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			end := strings.IndexByte(pattern[i+1:], '\'')
			if end < 0 {
				return "", fault.New("INVALID_DATETIME_PATTERN", "the pattern %q has a quote that does not close", pattern)
			}
			text := pattern[i+1 : i+1+end]
			if text == "" {
				text = "'"
			}
			b.WriteString(strings.ReplaceAll(text, "%", "%%"))
			i += end + 2
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			n := 1
			for i+n < len(pattern) && pattern[i+n] == c {
				n++
			}
			format, ok := letters[pattern[i:i+n]]
			if !ok {
				return "", fault.New("INVALID_DATETIME_PATTERN", "the letters %s of the pattern %q are not supported", pattern[i:i+n], pattern)
			}
			b.WriteString(format)
			i += n
		case c == '%':
			b.WriteString("%%")
			i++
		case c == '[' || c == ']' || c == '{' || c == '}' || c == '#':
			return "", fault.New("INVALID_DATETIME_PATTERN", "the pattern %q has a %c, which is not supported", pattern, c)
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), nil
}
