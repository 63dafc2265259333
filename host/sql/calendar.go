package sql

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// calendar is + and - of dates, instants and intervals; nil for other types.
func calendar(op string, types []sqlType, args []map[string]any) (node, error) {
	a, b := types[0], types[1]
	if op != "+" && op != "-" {
		return nil, nil
	}
	if op == "+" && (a.whole() && b.id == "DATE" || a.id == "INTERVAL" && b.dated()) {
		a, b = b, a
		args[0], args[1] = args[1], args[0]
	}
	plain := callOperator(op, args[0], args[1])
	switch {
	case a.id == "DATE" && b.whole():
		if b.id == "BIGINT" {
			return nil, fault.New("DATATYPE_MISMATCH", "a BIGINT is added to a DATE").WithHint("CAST it to INT")
		}
		return fill(fmt.Sprintf("__1 %s CAST(__2 AS INTEGER)", op), args[0], args[1])
	case a.id == "DATE" && b.id == "DATE":
		return nil, fault.New("NOT_SUPPORTED", "the difference of two dates is an interval, which has no type in a table").
			WithHint("datediff(later, earlier) gives days")
	case a.dated() && b.dated():
		if a.id != b.id {
			for i := range args {
				var err error
				if args[i], err = fill("CAST(__1 AS TIMESTAMP WITH TIME ZONE)", args[i]); err != nil {
					return nil, err
				}
			}
			plain = callOperator(op, args[0], args[1])
		}
		return plain, nil
	case a.id == "DATE" && b.id == "INTERVAL":
		days, known := wholeDays(args[1])
		switch {
		case !known:
			return nil, fault.New("NOT_SUPPORTED", "an interval that is no constant is added to a DATE").
				WithHint("Write date_add or add_months, or CAST the date to TIMESTAMP")
		case days:
			return fill("CAST(__1 AS DATE)", plain)
		}
		return fill(fmt.Sprintf("CAST(__1 AS TIMESTAMP WITH TIME ZONE) %s __2", op), args[0], args[1])
	case a.dated() && b.id == "INTERVAL", a.id == "INTERVAL":
		return plain, nil
	}
	return nil, nil
}

// wholeDays reports whether an interval that stands in the text is one of months or days.
func wholeDays(n node) (days, known bool) {
	value := func() (int64, bool) {
		args := n.nodes("children")
		if len(args) != 1 {
			return 0, false
		}
		text := args[0]
		for text.str("class") == "CAST" {
			text = text.child("child")
		}
		v, _ := constantText(text)
		if num, ok := text.child("value")["value"].(json.Number); ok {
			v = string(num)
		}
		i, err := strconv.ParseInt(v, 10, 64)
		return i, err == nil
	}
	switch n.str("function_name") {
	case "to_months":
		_, ok := value()
		return ok, ok
	case "to_microseconds":
		v, ok := value()
		return v%day == 0, ok
	}
	return false, false
}

// intervalNode writes an interval of months and microseconds.
func (r *rewriter) intervalNode(n node) error {
	args := n.nodes("children")
	var months, micros string
	if len(args) == 2 {
		months, micros = wholeText(args[0]), wholeText(args[1])
	}
	if months == "" || micros == "" {
		return r.unknownFunction(n, n.str("function_name"))
	}
	text := fmt.Sprintf("to_months(CAST('%s' AS INTEGER)) + to_microseconds(CAST('%s' AS BIGINT))", months, micros)
	switch {
	case micros == "0" && months != "0":
		text = fmt.Sprintf("to_months(CAST('%s' AS INTEGER))", months)
	case months == "0":
		text = fmt.Sprintf("to_microseconds(CAST('%s' AS BIGINT))", micros)
	}
	out, err := fill[any](text)
	if err != nil {
		return err
	}
	n.become(out)
	return nil
}

// wholeText is the text of a whole number that stands in a tree.
func wholeText(n node) string {
	if n.str("class") == "CAST" {
		return wholeText(n.child("child"))
	}
	v, ok := n.child("value")["value"].(json.Number)
	if !ok || strings.Trim(string(v), "-0123456789") != "" {
		return ""
	}
	return string(v)
}
