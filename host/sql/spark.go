package sql

import (
	"sync"

	"github.com/weir-data/weir/host/fault"
)

// sparkFunctions says in DuckDB's SQL what a function of Spark means, by name
// and number of arguments; __1, __2 … stand for the arguments. In front of the
// colon stands a letter an argument: what it is cast to, as signatureTypes has them.
// Where both know a name, Spark's meaning counts. What cannot be said exactly is
// not here: the function is then refused, or DuckDB's where Spark has none.
var sparkFunctions = map[string]string{
	"nvl/2": "coalesce(__1, __2)", "ifnull/2": "coalesce(__1, __2)",
	"nvl2/3":      "CASE WHEN __1 IS NOT NULL THEN __2 ELSE __3 END",
	"iff/3":       "CASE WHEN __1 THEN __2 ELSE __3 END",
	"isnull/1":    "__1 IS NULL",
	"isnotnull/1": "__1 IS NOT NULL", "equal_null/2": "__1 IS NOT DISTINCT FROM __2",
	"nullifzero/1": "nullif(__1, 0)", "zeroifnull/1": "coalesce(__1, 0)",
	"raise_error/1": "error('[USER_RAISED_EXCEPTION] ' || __1)",
	"isnan/1":       "f: coalesce(isnan(__1), false)",
	"nanvl/2":       "ff: CASE WHEN isnan(__1) THEN __2 ELSE __1 END",

	// Dates and times.
	"to_date/1": "d: __1", "to_timestamp/1": "t: __1", "to_timestamp_ltz/1": "t: __1", "to_timestamp_ntz/1": "n: __1",
	"year/1": "d: CAST(year(__1) AS INTEGER)", "quarter/1": "d: CAST(quarter(__1) AS INTEGER)", "month/1": "d: CAST(month(__1) AS INTEGER)",
	"day/1": "d: CAST(day(__1) AS INTEGER)", "dayofmonth/1": "d: CAST(day(__1) AS INTEGER)", "dayofyear/1": "d: CAST(dayofyear(__1) AS INTEGER)",
	"weekofyear/1": "d: CAST(week(__1) AS INTEGER)", "dayofweek/1": "d: CAST(dayofweek(__1) + 1 AS INTEGER)", "weekday/1": "d: CAST(isodow(__1) - 1 AS INTEGER)",
	"hour/1": "t: CAST(hour(__1) AS INTEGER)", "minute/1": "t: CAST(minute(__1) AS INTEGER)", "second/1": "t: CAST(second(__1) AS INTEGER)",
	"dayname/1": "d: strftime(__1, '%a')", "monthname/1": "d: strftime(__1, '%b')",
	"last_day/1": "d: last_day(__1)",
	"date_add/2": "di: __1 + __2", "dateadd/2": "di: __1 + __2", "date_sub/2": "di: __1 - __2",
	"datediff/2":            "dd: CAST(date_diff('day', __2, __1) AS INTEGER)",
	"date_diff/2":           "dd: CAST(date_diff('day', __2, __1) AS INTEGER)",
	"add_months/2":          "di: CAST(__1 + to_months(__2) AS DATE)",
	"make_date/3":           "iii: make_date(__1, __2, __3)",
	"make_timestamp/6":      "iiiiif: CAST(" + timeOf + " AS TIMESTAMP WITH TIME ZONE)",
	"make_timestamp_ntz/6":  "iiiiif: " + timeOf,
	"unix_date/1":           "d: CAST(date_diff('day', DATE '1970-01-01', __1) AS INTEGER)",
	"date_from_unix_date/1": "i: DATE '1970-01-01' + __1",
	"unix_seconds/1":        "t: CAST(floor(epoch_us(__1) / 1000000) AS BIGINT)",
	"unix_millis/1":         "t: CAST(floor(epoch_us(__1) / 1000) AS BIGINT)",
	"unix_micros/1":         "t: epoch_us(__1)",
	"timestamp_millis/1":    "l: make_timestamptz(__1 * 1000)",
	"timestamp_micros/1":    "l: make_timestamptz(__1)",
	"from_unixtime/1":       "l: strftime(CAST(make_timestamptz(__1 * 1000000) AS TIMESTAMP), '%Y-%m-%d %H:%M:%S')",
	"months_between/2":      "tt: floor(" + monthsBetween + " * 100000000 + 0.5) / 100000000e0",
	"make_interval/1":       "i: to_months(__1 * 12)", "make_interval/2": "ii: to_months(__1 * 12 + __2)",
	"make_interval/3":    "iii: to_months(__1 * 12 + __2) + to_microseconds(CAST(__3 AS BIGINT) * 604800000000)",
	"make_interval/4":    "iiii: to_months(__1 * 12 + __2) + to_microseconds((CAST(__3 AS BIGINT) * 7 + __4) * 86400000000)",
	"make_dt_interval/1": "i: to_microseconds(CAST(__1 AS BIGINT) * 86400000000)",
	"make_dt_interval/2": "ii: to_microseconds((CAST(__1 AS BIGINT) * 24 + __2) * 3600000000)",
	"make_dt_interval/3": "iii: to_microseconds(((CAST(__1 AS BIGINT) * 24 + __2) * 60 + __3) * 60000000)",
	"make_ym_interval/2": "ii: to_months(__1 * 12 + __2)",

	// Texts.
	"substring/2": "si: " + substringFrom, "substr/2": "si: " + substringFrom,
	"substring/3": "sii: " + substringOf, "substr/3": "sii: " + substringOf,
	"left/2":   "si: CASE WHEN __1 IS NOT NULL THEN left(__1, greatest(__2 + 0, 0)) END",
	"right/2":  "si: CASE WHEN __1 IS NULL THEN NULL WHEN __2 <= 0 THEN '' ELSE right(__1, __2) END",
	"instr/2":  "ss: CAST(CASE WHEN __2 = '' AND __1 IS NOT NULL THEN 1 ELSE instr(__1, __2) END AS INTEGER)",
	"locate/2": "ss: " + locateFirst, "charindex/2": "ss: " + locateFirst, "position/2": "ss: CAST(CASE WHEN __2 = '' AND __1 IS NOT NULL THEN 1 ELSE instr(__1, __2) END AS INTEGER)",
	"locate/3": "ssi: " + locateFrom, "charindex/3": "ssi: " + locateFrom,
	"lpad/2": "si: CASE WHEN __2 <= 0 AND __1 IS NOT NULL THEN '' ELSE lpad(__1, __2, ' ') END", "rpad/2": "si: CASE WHEN __2 <= 0 AND __1 IS NOT NULL THEN '' ELSE rpad(__1, __2, ' ') END",
	"lpad/3": "sis: CASE WHEN __1 IS NULL OR __2 IS NULL OR __3 IS NULL THEN NULL WHEN __2 <= 0 THEN '' WHEN __3 = '' THEN left(__1, __2) ELSE lpad(__1, __2, __3) END",
	"rpad/3": "sis: CASE WHEN __1 IS NULL OR __2 IS NULL OR __3 IS NULL THEN NULL WHEN __2 <= 0 THEN '' WHEN __3 = '' THEN left(__1, __2) ELSE rpad(__1, __2, __3) END",
	"trim/1": "s: trim(__1, ' ')", "ltrim/1": "s: ltrim(__1, ' ')", "rtrim/1": "s: rtrim(__1, ' ')", "btrim/1": "s: trim(__1, ' ')",
	"trim/2": "ss: trim(__1, __2)", "ltrim/2": "ss: ltrim(__1, __2)", "rtrim/2": "ss: rtrim(__1, __2)", "btrim/2": "ss: trim(__1, __2)",
	"split_part/3": "ssi: CASE WHEN __3 = 0 THEN error('[INVALID_INDEX_OF_ZERO] The index 0 is invalid') ELSE split_part(__1, __2, __3) END",
	"initcap/1":    "s: array_to_string(list_transform(string_split(" + lowerText + ", ' '), lambda w: CASE WHEN w[1] = 'ß' THEN 'Ss' ELSE upper(w[1]) END || substring(w, 2)), ' ')",
	"translate/3":  "sss: translate(__1, __2, __3)",
	"overlay/3":    "ssi: left(__1, greatest(__3 - 1, 0)) || __2 || substring(__1, __3 + CAST(length(__2) AS INTEGER))",
	"overlay/4":    "ssii: left(__1, greatest(__3 - 1, 0)) || __2 || substring(__1, __3 + CASE WHEN __4 < 0 THEN CAST(length(__2) AS INTEGER) ELSE __4 END)",
	"space/1":      "i: repeat(' ', greatest(__1, 0))",
	"ascii/1":      "s: CAST(CASE WHEN __1 = '' THEN 0 ELSE unicode(__1) END AS INTEGER)",
	"chr/1":        "l: CASE WHEN __1 < 0 THEN '' ELSE chr(CAST(__1 % 256 AS INTEGER)) END", "char/1": "l: CASE WHEN __1 < 0 THEN '' ELSE chr(CAST(__1 % 256 AS INTEGER)) END",
	"base64/1": "x: base64(__1)", "unbase64/1": "s: from_base64(__1)",
	"md5/1": "x: md5(__1)", "sha/1": "x: sha1(__1)", "sha1/1": "x: sha1(__1)", "sha256/1": "x: sha256(__1)",
	"replace/2": "ss: CASE WHEN __2 = '' THEN __1 ELSE replace(__1, __2, '') END", "replace/3": "sss: CASE WHEN __2 = '' THEN __1 ELSE replace(__1, __2, __3) END",
	"upper/1": "s: " + upperText, "ucase/1": "s: " + upperText, "lower/1": "s: " + lowerText, "lcase/1": "s: " + lowerText,
	"contains/2": "ss: contains(__1, __2)", "startswith/2": "ss: starts_with(__1, __2)", "endswith/2": "ss: ends_with(__1, __2)",
	"url_encode/1":        "s: replace(replace(replace(url_encode(__1), '%20', '+'), '~', '%7E'), '%2A', '*')",
	"url_decode/1":        "s: CASE WHEN regexp_matches(__1, '%(?:[^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)') THEN error('[CANNOT_DECODE_URL] The text is no encoded one') ELSE url_decode(replace(__1, '+', ' ')) END",
	"find_in_set/2":       "ss: CAST(CASE WHEN contains(__1, ',') AND __2 IS NOT NULL THEN 0 WHEN __1 IS NULL OR __2 IS NULL THEN NULL ELSE coalesce(list_position(string_split(__2, ','), __1), 0) END AS INTEGER)",
	"levenshtein/2":       "ss: " + levenshteinOf,
	"levenshtein/3":       "ssi: CASE WHEN " + levenshteinOf + " > __3 THEN -1 ELSE " + levenshteinOf + " END",
	"json_array_length/1": "s: CASE WHEN json_valid(__1) AND json_type(__1) = 'ARRAY' THEN CAST(json_array_length(__1) AS INTEGER) END",
	"json_object_keys/1":  "s: CASE WHEN json_valid(__1) AND json_type(__1) = 'OBJECT' THEN json_keys(__1) END",

	// Lists and maps.
	"array_size/1":      "CAST(len(__1) AS INTEGER)",
	"array_contains/2":  "CASE WHEN __1 IS NULL OR __2 IS NULL THEN NULL WHEN list_contains(__1, __2) THEN true WHEN list_count(__1) < len(__1) THEN NULL ELSE false END",
	"array_distinct/1":  "list_filter(__1, lambda e, i: list_position(__1, e) = i)",
	"array_union/2":     "CASE WHEN __1 IS NOT NULL AND __2 IS NOT NULL THEN list_filter(list_concat(__1, __2), lambda e, i: list_position(list_concat(__1, __2), e) = i) END",
	"array_intersect/2": "CASE WHEN __2 IS NOT NULL THEN list_filter(__1, lambda e, i: list_position(__1, e) = i AND list_position(__2, e) IS NOT NULL) END",
	"array_except/2":    "CASE WHEN __2 IS NOT NULL THEN list_filter(__1, lambda e, i: list_position(__1, e) = i AND list_position(__2, e) IS NULL) END",
	"array_join/2":      ".s: array_to_string(__1, __2)",
	"array_join/3":      ".ss: array_to_string(list_transform(__1, lambda e: coalesce(CAST(e AS VARCHAR), __3)), __2)",
	"array_position/2":  "CASE WHEN __1 IS NOT NULL AND __2 IS NOT NULL THEN CAST(coalesce(list_position(__1, __2), 0) AS BIGINT) END",
	"array_remove/2":    "CASE WHEN __2 IS NOT NULL THEN list_filter(__1, lambda e: e IS NULL OR e <> __2) END",
	"array_repeat/2":    ".i: list_transform(range(greatest(__2, 0)), lambda i: __1)",
	"array_max/1":       "list_max(__1)", "array_min/1": "list_min(__1)",
	"array_sort/1":      "list_sort(__1, 'ASC', 'NULLS LAST')",
	"sort_array/1":      "list_sort(__1, 'ASC', 'NULLS FIRST')",
	"array_append/2":    "CASE WHEN __1 IS NOT NULL THEN list_append(__1, __2) END",
	"array_prepend/2":   "CASE WHEN __1 IS NOT NULL THEN list_prepend(__2, __1) END",
	"array_compact/1":   "list_filter(__1, lambda e: e IS NOT NULL)",
	"arrays_overlap/2":  "CASE WHEN __1 IS NULL OR __2 IS NULL THEN NULL WHEN len(list_filter(__1, lambda e: e IS NOT NULL AND list_contains(__2, e))) > 0 THEN true WHEN len(__1) > 0 AND len(__2) > 0 AND (list_count(__1) < len(__1) OR list_count(__2) < len(__2)) THEN NULL ELSE false END",
	"slice/3":           ".ii: " + sliceOf,
	"get/2":             ".i: CASE WHEN __2 >= 0 THEN list_extract(__1, __2 + 1) END",
	"flatten/1":         "CASE WHEN list_count(__1) = len(__1) THEN flatten(__1) END",
	"map_from_arrays/2": "map(__1, __2)", "map_contains_key/2": "map_contains(__1, __2)",
	"map_concat/2":       "CASE WHEN len(map_keys(map_concat(__1, __2))) < len(map_keys(__1)) + len(map_keys(__2)) THEN error('[DUPLICATED_MAP_KEY] A key is in both maps') WHEN __1 IS NOT NULL AND __2 IS NOT NULL THEN map_concat(__1, __2) END",
	"map_from_entries/1": "map(list_transform(__1, lambda e: struct_extract_at(e, 1)), list_transform(__1, lambda e: struct_extract_at(e, 2)))",

	// Numbers.
	"ln/1":    "f: CASE WHEN __1 > 0 THEN ln(__1) END",
	"log/1":   "f: CASE WHEN __1 > 0 THEN ln(__1) END",
	"log/2":   "ff: CASE WHEN __1 > 0 AND __2 > 0 THEN ln(__2) / ln(__1) END",
	"log10/1": "f: CASE WHEN __1 > 0 THEN log10(__1) END", "log2/1": "f: CASE WHEN __1 > 0 THEN ln(__1) / ln(2e0) END",
	"exp/1": "f: exp(__1)", "sqrt/1": "f: CASE WHEN __1 < 0 THEN 'NaN'::DOUBLE ELSE sqrt(__1) END", "cbrt/1": "f: cbrt(__1)",
	"pow/2": "ff: pow(__1, __2)", "power/2": "ff: pow(__1, __2)",
	"sin/1": "f: sin(__1)", "cos/1": "f: cos(__1)", "tan/1": "f: tan(__1)", "atan/1": "f: atan(__1)", "atan2/2": "ff: atan2(__1, __2)",
	"asin/1": "f: CASE WHEN abs(__1) > 1 THEN 'NaN'::DOUBLE ELSE asin(__1) END", "acos/1": "f: CASE WHEN abs(__1) > 1 THEN 'NaN'::DOUBLE ELSE acos(__1) END",
	"sinh/1": "f: sinh(__1)", "cosh/1": "f: cosh(__1)", "tanh/1": "f: tanh(__1)", "degrees/1": "f: degrees(__1)", "radians/1": "f: radians(__1)",
	"e/0": "exp(1e0)", "rint/1": "f: round_even(__1, 0)",
	"factorial/1": "i: CASE WHEN __1 BETWEEN 0 AND 20 THEN CAST(factorial(__1) AS BIGINT) END",
	"shiftleft/2": "ii: CASE WHEN __2 BETWEEN 0 AND 31 THEN CAST((((CAST(__1 AS HUGEINT) * CAST(pow(2, __2) AS HUGEINT)) % 4294967296 + 4294967296 + 2147483648) % 4294967296) - 2147483648 AS INTEGER) WHEN __1 IS NOT NULL AND __2 IS NOT NULL THEN error('[NOT_SUPPORTED] shiftleft by that many bits') END",
	"bin/1":       "l: bin(__1)", "positive/1": "__1", "bit_count/1": "l: CAST(bit_count(__1) AS INTEGER)",
	"signum/1": "f: CAST(sign(__1) AS DOUBLE)",
}

// The longer templates.
const (
	timeOf = `CASE WHEN __4 NOT BETWEEN 0 AND 23 OR __5 NOT BETWEEN 0 AND 59 OR __6 < 0 OR __6 >= 60 THEN error('[DATETIME_FIELD_OUT_OF_BOUNDS] A field of the time is out of bounds')
		ELSE CAST(make_date(__1, __2, __3) AS TIMESTAMP) + to_microseconds(CAST(__4 AS BIGINT) * 3600000000 + CAST(__5 AS BIGINT) * 60000000 + CAST(round(__6 * 1000000) AS BIGINT)) END`
	substringFrom = `CASE WHEN __2 >= 0 THEN substring(__1, greatest(__2, 1)) ELSE substring(__1, greatest(CAST(length(__1) AS INTEGER) + __2 + 1, 1)) END`
	substringOf   = `CASE WHEN __2 >= 0 THEN substring(__1, greatest(__2, 1), CAST(CASE WHEN __3 < 0 THEN 0 ELSE __3 END AS BIGINT))
		ELSE substring(__1, greatest(CAST(length(__1) AS INTEGER) + __2 + 1, 1), CAST(CASE WHEN __3 + least(length(__1) + __2, 0) < 0 THEN 0 ELSE __3 + least(length(__1) + __2, 0) END AS BIGINT)) END`
	locateFirst = `CAST(CASE WHEN __1 = '' AND __2 IS NOT NULL THEN 1 ELSE instr(__2, __1) END AS INTEGER)`
	locateFrom  = `CAST(CASE WHEN __1 IS NULL OR __2 IS NULL THEN NULL WHEN __3 IS NULL OR __3 <= 0 THEN 0 WHEN __1 = '' THEN __3
		WHEN instr(substring(__2, __3), __1) = 0 THEN 0 ELSE instr(substring(__2, __3), __1) + __3 - 1 END AS INTEGER)`
	levenshteinOf = `CASE WHEN strlen(__1) = length(__1) AND strlen(__2) = length(__2) THEN CAST(levenshtein(__1, __2) AS INTEGER)
		WHEN __1 IS NOT NULL AND __2 IS NOT NULL THEN error('[NOT_SUPPORTED] levenshtein takes ASCII texts only') END`
	// A letter that becomes several letters, or another at the end of a word, is not the engine's to change.
	upperText = `CASE WHEN strlen(__1) = length(__1) THEN upper(__1)
		WHEN regexp_matches(__1, '[\x{149}\x{1f0}\x{390}\x{3b0}\x{587}\x{1e96}-\x{1e9e}\x{1f50}-\x{1f57}\x{1f80}-\x{1fff}\x{fb00}-\x{fb17}]') THEN error('[NOT_SUPPORTED] upper of a letter that becomes several')
		ELSE upper(replace(__1, 'ß', 'SS')) END`
	lowerText = `CASE WHEN strlen(__1) = length(__1) THEN lower(__1)
		WHEN regexp_matches(__1, '[İΣ]') THEN error('[NOT_SUPPORTED] lower of a letter that depends on its place') ELSE lower(__1) END`
	sliceOf = `CASE WHEN __2 = 0 THEN error('[INVALID_PARAMETER_VALUE] slice starts at 1 or counts from the end')
		WHEN __3 < 0 THEN error('[INVALID_PARAMETER_VALUE] slice takes a length from 0')
		WHEN __3 = 0 AND __1 IS NOT NULL AND __2 IS NOT NULL THEN list_slice(__1, 1, 0)
		WHEN __2 > 0 THEN list_slice(__1, __2, __2 + __3 - 1)
		WHEN len(__1) + __2 < 0 THEN list_slice(__1, 1, 0)
		ELSE list_slice(__1, len(__1) + __2 + 1, len(__1) + __2 + __3) END`
	monthsBetween = `CAST((year(__1) - year(__2)) * 12 + month(__1) - month(__2) + CASE
		WHEN day(__1) = day(__2) OR CAST(__1 AS DATE) = last_day(CAST(__1 AS DATE)) AND CAST(__2 AS DATE) = last_day(CAST(__2 AS DATE)) THEN 0e0
		ELSE ((day(__1) - day(__2)) * 86400e0 + (epoch(__1) - epoch(CAST(CAST(__1 AS DATE) AS TIMESTAMP WITH TIME ZONE)))
			- (epoch(__2) - epoch(CAST(CAST(__2 AS DATE) AS TIMESTAMP WITH TIME ZONE)))) / 2678400e0 END AS DOUBLE)`
)

// otherMeaning are functions of Spark that have no exact equal here, and what to do.
var otherMeaning = map[string]string{
	"hash": "Spark's hash gives other numbers: use md5() or sha2(x, 256)", "xxhash64": "Use md5() or sha2(x, 256)", "crc32": "Use md5() or sha2(x, 256)",
	"conv":                        "hex() and bin() write numbers in another base",
	"soundex":                     "Compute it in a plugin",
	"rand":                        "Derive the value from the row, such as md5(key)",
	"randn":                       "Derive the value from the row, such as md5(key)",
	"shuffle":                     "The order of a list must not change from run to run",
	"monotonically_increasing_id": "Number rows with row_number() OVER (ORDER BY …) in a materialized view",
	"array_insert":                "Build the list with concat and slice", "json_tuple": "Use get_json_object for each field, or LATERAL VIEW json_tuple",
	"schema_of_json": "Write the schema down", "approx_count_distinct": "Use count(DISTINCT x), which is exact",
	"percentile_approx": "Use percentile(x, p), which is exact", "approx_percentile": "Use percentile(x, p), which is exact",
	"kurtosis": "Spark's kurtosis is that of the whole population: compute it from sums", "skewness": "Spark's skewness is that of the whole population: compute it from sums",
	"mode": "Which of several values is taken is open: group, count and pick with max_by", "histogram_numeric": "Group by a bucket of the value",
}

// templates holds the parsed trees of the texts above.
var templates sync.Map

// fill gives the template's tree with the arguments in their places.
func fill[A any](template string, args ...A) (map[string]any, error) {
	tree, ok := templates.Load(template)
	if !ok {
		statement, _, err := parseTree("SELECT "+template, newOrigin("", template, 1))
		if err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "the template %s cannot be parsed", template)
		}
		tree = statement.child("node").nodes("select_list")[0]
		templates.Store(template, tree)
	}
	plain := make([]any, len(args))
	for i, a := range args {
		plain[i] = a
		if n, ok := plain[i].(node); ok {
			plain[i] = map[string]any(n)
		}
	}
	return substituteArguments(clone(tree), plain).(map[string]any), nil
}

// substituteArguments puts the arguments where __1, __2 … stand, and no locations elsewhere.
func substituteArguments(v any, args []any) any {
	switch v := v.(type) {
	case map[string]any:
		if names := node(v).strings("column_names"); len(names) == 1 && len(names[0]) == 3 && names[0][:2] == "__" {
			if i := int(names[0][2] - '1'); i >= 0 && i < len(args) {
				out := clone(args[i]).(map[string]any)
				if alias := node(v).str("alias"); alias != "" {
					out["alias"] = alias
				}
				return out
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
