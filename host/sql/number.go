package sql

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// maxDigits is what a DECIMAL holds. From longDigits on DuckDB computes with 128 bits.
const (
	maxDigits  = 38
	longDigits = 19
)

// decimalOf gives the type that Spark takes a number for beside a decimal: a whole
// number that stands in the text has as many digits as it is written with.
func decimalOf(t sqlType, n node) sqlType {
	if t.decimal() {
		return t
	}
	if n.str("class") == "CAST" && n.child("child").str("class") == "CAST" {
		n = n.child("child").child("child") // 1L, as sparkNumber writes it
	}
	if v, ok := n.child("value")["value"].(json.Number); ok && n.str("class") == "CONSTANT" {
		return sqlType{id: "DECIMAL", width: len(strings.TrimLeft(string(v), "-"))}
	}
	return sqlType{id: "DECIMAL", width: wholeWidths[t.id]}
}

// fitted is Spark's rule for a decimal that would be too wide: places behind the
// point are given up, but six are kept.
func fitted(width, scale int) sqlType {
	if width > maxDigits {
		whole := width - scale
		scale = max(maxDigits-whole, min(scale, 6))
		width = maxDigits
	}
	return sqlType{id: "DECIMAL", width: width, scale: scale}
}

// arithmetic is + - * / % and DIV over two numbers, as Spark does them.
func arithmetic(op string) meaning {
	return func(types []sqlType, args []map[string]any) (node, error) {
		if node, err := calendar(op, types, args); node != nil || err != nil {
			return node, err
		}
		a, b, err := sameKind(op, types, args)
		if err != nil {
			return nil, err
		}
		plain := callOperator(op, args[0], args[1])
		switch {
		case a.null() || b.null():
			a = sqlType{id: "DOUBLE"}
			if op != "/" {
				return plain, nil
			}
			fallthrough
		case a.floating() || op == "/" && a.whole():
			if op == "//" {
				return nil, fault.New("DATATYPE_MISMATCH", "DIV takes whole numbers and decimals")
			}
			to := a
			if op == "/" {
				to = sqlType{id: "DOUBLE"}
			}
			for i := range args {
				if args[i], err = fill(fmt.Sprintf("CAST(__1 AS %s)", to), args[i]); err != nil {
					return nil, err
				}
			}
			return guardZero(op, callOperator(op, args[0], args[1]), args)
		case a.whole():
			if op == "//" {
				if plain, err = fill("CAST(__1 AS BIGINT)", plain); err != nil {
					return nil, err
				}
			}
			return guardZero(op, plain, args)
		case a.decimal():
			return decimals(op, a, b, args)
		}
		return guardZero(op, plain, args) // types that Spark does not have
	}
}

// sameKind brings two numbers to the kind that Spark computes in, and gives their types.
func sameKind(op string, types []sqlType, args []map[string]any) (a, b sqlType, err error) {
	a, b = types[0], types[1]
	for i, t := range types {
		other := types[1-i]
		if !t.text() {
			continue
		}
		// A text beside a whole number is taken for one, else for a DOUBLE.
		to := sqlType{id: "DOUBLE"}
		if other.whole() && op != "/" {
			to.id = "BIGINT"
		}
		if args[i], err = cast(args[i], t, to, false); err != nil {
			return a, b, err
		}
		if i == 0 {
			a = to
		} else {
			b = to
		}
	}
	number := func(t sqlType) bool { return t.whole() || t.floating() || t.decimal() || t.null() }
	switch {
	case !number(a) || !number(b):
		if strings.HasPrefix(a.id, "U") || strings.HasPrefix(b.id, "U") || a.id == "HUGEINT" || b.id == "HUGEINT" {
			return sqlType{id: "UNSIGNED"}, b, nil // types that Spark does not have
		}
		return a, b, fault.New("DATATYPE_MISMATCH", "%s and %s do not go with %s", sparkName(types[0]), sparkName(types[1]), op)
	case a.null() || b.null():
		return a, b, nil
	case a.floating() || b.floating():
		to := sqlType{id: "DOUBLE"}
		if a.id == "FLOAT" && b.id == "FLOAT" {
			to.id = "FLOAT"
		}
		return to, to, nil
	case a.decimal() || b.decimal():
		a, b = decimalOf(a, args[0]), decimalOf(b, args[1])
		return a, b, nil
	}
	// DuckDB takes a whole number in the text for one of the type beside it.
	wide := a
	if wholeWidths[b.id] > wholeWidths[a.id] {
		wide = b
	}
	for i, t := range []sqlType{a, b} {
		if !t.equal(wide) || args[i]["class"] == "CONSTANT" && !a.equal(b) {
			if args[i], err = fill(fmt.Sprintf("CAST(__1 AS %s)", wide), args[i]); err != nil {
				return a, b, err
			}
		}
	}
	if args[0]["class"] == "CONSTANT" && wide.id != "INTEGER" {
		args[0], err = fill(fmt.Sprintf("CAST(__1 AS %s)", wide), args[0])
	}
	return wide, wide, err
}

func callOperator(op string, args ...any) map[string]any {
	n := callNode(op, args...)
	n["is_operator"] = true
	return n
}

// guardZero fails a division by zero, where DuckDB gives infinity or NULL.
func guardZero(op string, division map[string]any, args []map[string]any) (node, error) {
	if op != "/" && op != "//" && op != "%" {
		return division, nil
	}
	if notZero(args[1]) {
		return division, nil
	}
	return fill("CASE WHEN __2 = 0 AND __1 IS NOT NULL THEN error('[DIVIDE_BY_ZERO] Division by zero') ELSE __3 END", args[0], args[1], division)
}

// notZero reports a constant other than zero.
func notZero(n node) bool {
	for n.str("class") == "CAST" {
		n = n.child("child")
	}
	var text string
	switch v := n.child("value")["value"].(type) {
	case json.Number:
		text = string(v)
	case string:
		text = v
	}
	return n.str("class") == "CONSTANT" && strings.ContainsAny(text, "123456789") && strings.Trim(text, "0123456789.-") == ""
}

// decimals computes with two decimals; the result has the type that Spark gives it.
func decimals(op string, a, b sqlType, args []map[string]any) (node, error) {
	as := func(t sqlType, value map[string]any) (map[string]any, error) {
		return fill(fmt.Sprintf("CAST(__1 AS %s)", t), value)
	}
	for i, t := range []sqlType{a, b} {
		if i == 0 {
			t.width = max(t.width, longDigits) // else DuckDB keeps the result to 18 digits
		}
		var err error
		if args[i], err = as(t, args[i]); err != nil {
			return nil, err
		}
	}
	whole := max(a.width-a.scale, b.width-b.scale)
	var to sqlType
	switch op {
	case "+", "-":
		scale := max(a.scale, b.scale)
		to = fitted(whole+scale+1, scale)
	case "*":
		to = fitted(a.width+b.width+1, a.scale+b.scale)
	case "/":
		scale := max(6, a.scale+b.width+1)
		return divideDecimals(a, b, fitted(a.width-a.scale+b.scale+scale, scale), args)
	case "%":
		scale := max(a.scale, b.scale)
		to = fitted(min(a.width-a.scale, b.width-b.scale)+scale, scale)
		common := fitted(whole+scale, scale)
		for i := range args {
			var err error
			if args[i], err = as(common, args[i]); err != nil {
				return nil, err
			}
		}
		rest, err := as(to, callOperator("%", args[0], args[1]))
		if err != nil {
			return nil, err
		}
		return guardZero(op, rest, args)
	case "//":
		scale := max(a.scale, b.scale)
		unscaled := make([]map[string]any, 2)
		for i, t := range []sqlType{a, b} {
			var err error
			if unscaled[i], err = unscale(t, args[i], scale); err != nil {
				return nil, err
			}
		}
		quotient, err := fill("CAST(__1 // __2 AS BIGINT)", unscaled[0], unscaled[1])
		if err != nil {
			return nil, err
		}
		return guardZero(op, quotient, args)
	}
	return as(to, callOperator(op, args[0], args[1]))
}

// unscale gives a decimal as a HUGEINT of units of the scale.
func unscale(t sqlType, value map[string]any, scale int) (map[string]any, error) {
	digits, err := fill("CAST(replace(CAST(__1 AS VARCHAR), '.', '') AS HUGEINT)", value)
	if t.scale == 0 {
		digits, err = fill("CAST(__1 AS HUGEINT)", value)
	} else if t.width+t.scale <= maxDigits {
		digits, err = fill(fmt.Sprintf("CAST(CAST(__1 AS DECIMAL(%d,%d)) * CAST('1%s' AS DECIMAL(%d,0)) AS HUGEINT)", max(t.width, longDigits), t.scale, strings.Repeat("0", t.scale), t.scale+1), value)
	}
	if err != nil || scale == t.scale {
		return digits, err
	}
	return fill(fmt.Sprintf("__1 * CAST('1%s' AS HUGEINT)", strings.Repeat("0", scale-t.scale)), digits)
}

// divideDecimals divides exactly and rounds half away from zero to the scale of
// the result: DuckDB divides decimals as DOUBLE.
func divideDecimals(a, b, to sqlType, args []map[string]any) (node, error) {
	shift := to.scale + b.scale - a.scale
	numerator, err := unscale(a, args[0], a.scale+shift)
	if err != nil {
		return nil, err
	}
	denominator, err := unscale(b, args[1], b.scale)
	if err != nil {
		return nil, err
	}
	rounded, err := fill(roundedQuotient, numerator, denominator)
	if err != nil {
		return nil, err
	}
	quotient, err := scaleDown(rounded, to)
	if err != nil {
		return nil, err
	}
	return guardZero("/", quotient, args)
}

const roundedQuotient = `__1 // __2 + CASE WHEN abs(__1 % __2) >= abs(__2) - abs(__1 % __2) THEN CASE WHEN (__1 < 0) = (__2 < 0) THEN 1 ELSE -1 END ELSE 0 END`

// scaleDown gives a HUGEINT of units of the type's scale as the type.
func scaleDown(units map[string]any, to sqlType) (map[string]any, error) {
	if to.scale == 0 {
		return fill(fmt.Sprintf("CAST(__1 AS %s)", to), units)
	}
	return fill(fmt.Sprintf("CAST(CAST(__1 AS DECIMAL(38,0)) * CAST('0.%s1' AS DECIMAL(%d,%d)) AS %s)", strings.Repeat("0", to.scale-1), to.scale, to.scale, to), units)
}

// averageDecimal is avg over decimals: the exact sum by the number of values.
func averageDecimal(t sqlType, sum, count map[string]any) (node, error) {
	total := sqlType{id: "DECIMAL", width: maxDigits, scale: t.scale}
	to := fitted(t.width+4, t.scale+4)
	if t.width+4 > maxDigits {
		to = sqlType{id: "DECIMAL", width: maxDigits, scale: min(t.scale+4, maxDigits)}
	}
	numerator, err := unscale(total, sum, to.scale)
	if err != nil {
		return nil, err
	}
	rounded, err := fill(roundedQuotient, numerator, count)
	if err != nil {
		return nil, err
	}
	quotient, err := scaleDown(rounded, to)
	if err != nil {
		return nil, err
	}
	return fill("CASE WHEN __1 > 0 THEN __2 END", count, quotient)
}
