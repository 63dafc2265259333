package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// dateFormat is date_format and from_unixtime with a pattern.
func dateFormat(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return r.sparkFunction(n, name, args, ctx)
	}
	text, err := constantArgument(name, args[1])
	if err != nil {
		return true, fault.New("INVALID_DATETIME_PATTERN", "the pattern of %s is not a constant text", name)
	}
	p, err := parsePattern(text)
	if err != nil {
		return true, err
	}
	sql, err := p.format()
	if err != nil {
		return true, err
	}
	return true, r.wait(n, name+" "+text, args[:1], ctx, func(types []sqlType, args []map[string]any) (node, error) {
		letters, read := "t", "CAST(__1 AS TIMESTAMP)"
		switch {
		case name == "from_unixtime":
			letters, read = "l", "CAST(make_timestamptz(__1 * 1000000) AS TIMESTAMP)"
		case types[0].id == wallTime:
			letters, read = "n", "__1"
		}
		value, err := coerce(name, letters, types, args)
		if err != nil {
			return nil, err
		}
		when, err := fill(read, value...)
		if err != nil {
			return nil, err
		}
		if letters != "t" && strings.Contains(sql, "__2") {
			return nil, badPattern("the pattern %q writes the zone of a time that has none", text)
		}
		return fill(sql, when, value[0].(map[string]any))
	})
}

// dateParse reads a text in a pattern; without one it is a cast.
func dateParse(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	unix := strings.HasSuffix(name, "unix_timestamp")
	text := ""
	switch {
	case len(args) == 2:
		var err error
		if text, err = constantArgument(name, args[1]); err != nil {
			return true, fault.New("INVALID_DATETIME_PATTERN", "the pattern of %s is not a constant text", name)
		}
	case len(args) == 1 && unix:
		text = "yyyy-MM-dd HH:mm:ss"
	case len(args) == 1 && name == "try_to_timestamp":
		return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) {
			return cast(args[0], types[0], sqlType{id: zonedTime}, true)
		})
	default:
		return r.sparkFunction(n, name, args, ctx)
	}
	p, err := parsePattern(text)
	if err != nil {
		return true, err
	}
	sql, zoned, err := p.parse(name == "try_to_timestamp")
	if err != nil {
		return true, err
	}
	return true, r.wait(n, name+" "+text, args[:1], ctx, func(types []sqlType, args []map[string]any) (node, error) {
		var when map[string]any
		switch t := types[0]; {
		case t.text():
			var err error
			if when, err = fill(sql, args[0]); err != nil {
				return nil, err
			}
			if zoned && name == "to_date" {
				return fill("CAST(__1 AS DATE)", when)
			}
		case t.dated(), t.null():
			when = args[0]
		default:
			return nil, mismatch(name, t)
		}
		switch {
		case name == "to_date":
			return fill("CAST(__1 AS DATE)", when)
		case unix:
			return fill("epoch_us(CAST(__1 AS TIMESTAMP WITH TIME ZONE)) // 1000000", when)
		}
		return fill("CAST(__1 AS TIMESTAMP WITH TIME ZONE)", when)
	})
}

// truncUnits are the units of date_trunc and trunc, in DuckDB's words.
var truncUnits = map[string]string{
	"YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month", "MON": "month", "WEEK": "week",
	"DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second", "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}

// dateTrunc is date_trunc(unit, zonedTime) and trunc(date, unit); a unit that is none gives NULL.
func dateTrunc(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return false, nil // of a number, which DuckDB has
	}
	unitAt, valueAt, letters := 0, 1, "t"
	if name == "trunc" {
		unitAt, valueAt, letters = 1, 0, "d"
	}
	text, err := constantArgument(name, args[unitAt])
	if err != nil {
		return true, err
	}
	unit, ok := truncUnits[strings.ToUpper(text)]
	if name == "trunc" && (unit == "day" || len(unit) > 7 || unit == "hour" || unit == "minute" || unit == "second") {
		ok = false
	}
	template := letters + ": CAST(date_trunc('" + unit + "', __1) AS TIMESTAMP WITH TIME ZONE)"
	if name == "trunc" {
		template = letters + ": CAST(date_trunc('" + unit + "', __1) AS DATE)"
	}
	if !ok {
		template = letters + ": CASE WHEN false THEN __1 END"
	}
	head, body := splitSignature(template, 1)
	return true, r.wait(n, name+" "+text, args[valueAt:valueAt+1], ctx, signed(name, head, body))
}

var weekdays = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// nextDay is the first day after a date that is a given day of the week.
func nextDay(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, arity(name, len(args))
	}
	text, err := constantArgument(name, args[1])
	if err != nil {
		return true, err
	}
	known := map[string]bool{"MO": true, "MON": true, "MONDAY": true, "TU": true, "TUE": true, "TUESDAY": true, "WE": true, "WED": true, "WEDNESDAY": true,
		"TH": true, "THU": true, "THURSDAY": true, "FR": true, "FRI": true, "FRIDAY": true, "SA": true, "SAT": true, "SATURDAY": true, "SU": true, "SUN": true, "SUNDAY": true}
	upper := strings.ToUpper(text)
	if !known[upper] {
		return true, fault.New("ILLEGAL_DAY_OF_WEEK", "%q is no day of the week", text)
	}
	for i, d := range weekdays {
		if strings.HasPrefix(upper, d) {
			return true, r.wait(n, name+upper, args[:1], ctx, signed(name, "d", fmt.Sprintf("__1 + CAST(1 + (%d - isodow(__1) + 6) %% 7 AS INTEGER)", i+1)))
		}
	}
	return true, mismatch(name, sqlType{})
}

// dateParts are the fields of EXTRACT and date_part: over a date, and over an zonedTime.
var dateParts = map[string]string{
	"YEAR": "d: CAST(year(__1) AS INTEGER)", "YEAROFWEEK": "d: CAST(isoyear(__1) AS INTEGER)", "QUARTER": "d: CAST(quarter(__1) AS INTEGER)",
	"MONTH": "d: CAST(month(__1) AS INTEGER)", "WEEK": "d: CAST(week(__1) AS INTEGER)", "DAY": "d: CAST(day(__1) AS INTEGER)",
	"DAYOFWEEK": "d: CAST(dayofweek(__1) + 1 AS INTEGER)", "DAYOFWEEK_ISO": "d: CAST(isodow(__1) AS INTEGER)", "DOY": "d: CAST(dayofyear(__1) AS INTEGER)",
	"HOUR": "t: CAST(hour(__1) AS INTEGER)", "MINUTE": "t: CAST(minute(__1) AS INTEGER)",
	"SECOND": "t: CAST(CAST(microsecond(__1) AS DECIMAL(8,0)) * CAST('0.000001' AS DECIMAL(6,6)) AS DECIMAL(8,6))",
}

var datePartNames = map[string]string{
	"Y": "YEAR", "YEARS": "YEAR", "YR": "YEAR", "YRS": "YEAR", "QTR": "QUARTER", "MON": "MONTH", "MONS": "MONTH", "MONTHS": "MONTH", "W": "WEEK", "WEEKS": "WEEK",
	"D": "DAY", "DAYS": "DAY", "DOW": "DAYOFWEEK", "DOW_ISO": "DAYOFWEEK_ISO", "ISODOW": "DAYOFWEEK_ISO", "H": "HOUR", "HOURS": "HOUR", "HR": "HOUR", "HRS": "HOUR",
	"M": "MINUTE", "MIN": "MINUTE", "MINS": "MINUTE", "MINUTES": "MINUTE", "S": "SECOND", "SEC": "SECOND", "SECS": "SECOND", "SECONDS": "SECOND", "ISOYEAR": "YEAROFWEEK",
}

func datePart(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, arity(name, len(args))
	}
	text, err := constantArgument(name, args[0])
	if err != nil {
		return true, err
	}
	field := strings.ToUpper(text)
	if other, ok := datePartNames[field]; ok {
		field = other
	}
	part, ok := dateParts[field]
	if !ok {
		return true, fault.New("INVALID_EXTRACT_FIELD", "%s is no field of a date", text)
	}
	head, body := splitSignature(part, 1)
	return true, r.wait(n, name+field, args[1:], ctx, signed(name, head, body))
}

// timeUnit gives the unit that is the first of three arguments, as a bare word.
func timeUnit(args []any) (string, bool) {
	if len(args) != 3 {
		return "", false
	}
	names := node(args[0].(map[string]any)).strings("column_names")
	if len(names) != 1 {
		return "", false
	}
	unit := strings.ToUpper(names[0])
	if unit == "DAYOFYEAR" {
		unit = "DAY"
	}
	_, ok := intervalUnits[unit]
	return unit, ok
}

// timeAdd is timestampadd(unit, n, time) and its other names.
func timeAdd(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	unit, ok := timeUnit(args)
	if !ok {
		return r.sparkFunction(n, name, args, ctx)
	}
	return true, r.wait(n, name+unit, args[1:], ctx, func(types []sqlType, args []map[string]any) (node, error) {
		letters := "it"
		if types[1].id == wallTime {
			letters = "in"
		}
		coerced, err := coerce(name, letters, types, args)
		if err != nil {
			return nil, err
		}
		if u := intervalUnits[unit]; u.months > 0 {
			return fill(fmt.Sprintf("__2 + to_months(__1 * %d)", u.months), coerced...)
		}
		return fill(fmt.Sprintf("__2 + to_microseconds(CAST(__1 AS BIGINT) * %d)", intervalUnits[unit].micros), coerced...)
	})
}

// timeDiff is timestampdiff(unit, from, to) and its other names: whole units.
func timeDiff(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	unit, ok := timeUnit(args)
	if !ok {
		return r.sparkFunction(n, name, args, ctx)
	}
	return true, r.wait(n, name+unit, args[1:], ctx, func(types []sqlType, args []map[string]any) (node, error) {
		coerced, err := coerce(name, "tt", types, args)
		if err != nil {
			return nil, err
		}
		if u := intervalUnits[unit]; u.months > 0 {
			return fill(fmt.Sprintf("CAST((%s) // %d AS BIGINT)", wholeMonths, u.months), coerced...)
		}
		return fill(fmt.Sprintf("(epoch_us(__2) - epoch_us(__1)) // %d", intervalUnits[unit].micros), coerced...)
	})
}

// wholeMonths are the months that have passed between two instants: a month is over
// on the same day at the same time.
const wholeMonths = `(year(__2) - year(__1)) * 12 + month(__2) - month(__1) + CASE
	WHEN __2 >= __1 AND (day(__2) < day(__1) OR day(__2) = day(__1) AND CAST(CAST(__2 AS TIMESTAMP) AS TIME) < CAST(CAST(__1 AS TIMESTAMP) AS TIME)) THEN -1
	WHEN __2 < __1 AND (day(__2) > day(__1) OR day(__2) = day(__1) AND CAST(CAST(__2 AS TIMESTAMP) AS TIME) > CAST(CAST(__1 AS TIMESTAMP) AS TIME)) THEN 1
	ELSE 0 END`

// zoned is from_utc_timestamp and to_utc_timestamp: a shift by the offset of a zone.
func zoned(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, arity(name, len(args))
	}
	zone, err := constantArgument(name, args[1])
	if err != nil {
		return true, err
	}
	from, to := "'UTC'", quoteText(zone)
	if name == "to_utc_timestamp" {
		from, to = to, from
	}
	return true, r.wait(n, name+zone, args[:1], ctx, signed(name, "t", fmt.Sprintf("timezone(%s, timezone(%s, __1))", from, to)))
}

func fromSeconds(name string, types []sqlType, args []map[string]any) (node, error) {
	switch t := types[0]; {
	case t.whole(), t.decimal(), t.floating():
		return cast(args[0], t, sqlType{id: zonedTime}, false)
	}
	return nil, mismatch(name, types[0])
}

// monthsApart is months_between with the third argument that leaves the result unrounded.
func monthsApart(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 3 {
		return r.sparkFunction(n, name, args, ctx)
	}
	v, ok := constantFlag(args[2].(map[string]any))
	if !ok {
		return true, fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant third argument", name)
	}
	if v {
		return r.sparkFunction(n, name, args[:2], ctx)
	}
	return true, r.wait(n, name, args[:2], ctx, signed(name, "tt", monthsBetween))
}

// constantFlag gives a BOOLEAN that stands in the text.
func constantFlag(n node) (value, ok bool) {
	if n.str("class") == "CAST" {
		n = n.child("child")
	}
	switch v := n.child("value")["value"].(type) {
	case bool:
		return v, true
	case string:
		return v == "t" || v == "true", v == "t" || v == "f" || v == "true" || v == "false"
	}
	return false, false
}
