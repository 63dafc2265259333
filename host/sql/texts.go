package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// decodeOf is decode(bytes, charset), or decode(value, search, result, … default).
func decodeOf(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) == 2 {
		if err := isUTF8(name, args[1]); err != nil {
			return true, err
		}
		return true, r.wait(n, name, args[:1], ctx, signed(name, "x", "decode(__1)"))
	}
	if len(args) < 3 {
		return false, nil
	}
	var cases []string
	for i := 1; i+1 < len(args); i += 2 {
		cases = append(cases, fmt.Sprintf("WHEN __1 IS NOT DISTINCT FROM %s THEN %s", argument(i), argument(i+1)))
	}
	if len(args) > 9 {
		return true, fault.New("NOT_SUPPORTED", "decode with more than nine arguments is not supported").WithHint("Write CASE")
	}
	tail := " END"
	if len(args)%2 == 0 {
		tail = " ELSE " + argument(len(args)-1) + " END"
	}
	out, err := fill("CASE "+strings.Join(cases, " ")+tail, args...)
	if err == nil {
		n.become(out)
	}
	return true, err
}

// argument is what stands in a template for the i-th argument, from 0.
func argument(i int) string { return fmt.Sprintf("__%d", i+1) }

func isUTF8(name string, arg any) error {
	charset, err := constantArgument(name, arg)
	if err != nil {
		return err
	}
	if !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return fault.New("INVALID_PARAMETER_VALUE", "the charset %s is not supported: there is UTF-8", charset)
	}
	return nil
}

func encodeOf(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return false, nil
	}
	if err := isUTF8(name, args[1]); err != nil {
		return true, err
	}
	return true, r.wait(n, name, args[:1], ctx, signed(name, "s", "encode(__1)"))
}

func sha2(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, arity(name, len(args))
	}
	if bits, ok := constantWhole(args[1].(map[string]any)); !ok || bits != 256 && bits != 0 {
		return true, fault.New("NOT_SUPPORTED", "sha2 gives 256 bits only")
	}
	return true, r.wait(n, name, args[:1], ctx, signed(name, "x", "sha256(__1)"))
}

func elt(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) < 2 || len(args) > 9 {
		return true, arity(name, len(args))
	}
	text := "CASE __1"
	for i := 1; i < len(args); i++ {
		text += fmt.Sprintf(" WHEN %d THEN %s", i, argument(i))
	}
	out, err := fill(text+" ELSE CASE WHEN __1 IS NOT NULL THEN "+badIndex+" END END", args...)
	if err == nil {
		n.become(out)
	}
	return true, err
}

// formatNumber is format_number(number, digits), with commas between thousands.
func formatNumber(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return true, arity(name, len(args))
	}
	digits, ok := constantWhole(args[1].(map[string]any))
	if !ok || digits < 0 || digits > 20 {
		return true, fault.New("NOT_SUPPORTED", "format_number takes a constant number of digits here")
	}
	return true, r.wait(n, fmt.Sprint(name, digits), args[:1], ctx, func(types []sqlType, args []map[string]any) (node, error) {
		t := types[0]
		switch {
		case t.whole():
			tail := ""
			if digits > 0 {
				tail = " || '." + strings.Repeat("0", digits) + "'"
			}
			return fill("format('{:,d}', CAST(__1 AS BIGINT))"+tail, args[0])
		case t.floating():
			return fill(fmt.Sprintf("format('{:,.%df}', CAST(__1 AS DOUBLE))", digits), args[0])
		}
		return nil, fault.New("NOT_SUPPORTED", "format_number of %s is not supported", sparkName(t)).WithHint("CAST to DOUBLE")
	})
}

// formatString is format_string with %s, %d and %% only.
func formatString(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) == 0 {
		return true, arity(name, 0)
	}
	format, ok := constantText(args[0].(map[string]any))
	if !ok {
		return true, fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant format", name)
	}
	type piece struct {
		text string
		arg  int
		verb byte
	}
	var pieces []piece
	next := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			if k := len(pieces); k > 0 && pieces[k-1].arg == 0 {
				pieces[k-1].text += format[i : i+1]
			} else {
				pieces = append(pieces, piece{text: format[i : i+1]})
			}
			continue
		}
		i++
		switch {
		case i < len(format) && format[i] == '%':
			pieces = append(pieces, piece{text: "%"})
		case i < len(format) && (format[i] == 's' || format[i] == 'd') && next < len(args):
			pieces = append(pieces, piece{arg: next, verb: format[i]})
			next++
		default:
			return true, fault.New("NOT_SUPPORTED", "%s knows %%s, %%d and %%%% only, one for each argument", name).WithHint("Use lpad, round and format_number for the others")
		}
	}
	return true, r.wait(n, name+format, args[1:], ctx, func(types []sqlType, args []map[string]any) (node, error) {
		out := textConstant("")
		for _, p := range pieces {
			part := textConstant(p.text)
			if p.arg > 0 {
				t := types[p.arg-1]
				if p.verb == 'd' && !t.whole() || p.verb == 's' && !t.text() && !t.whole() && !t.null() {
					return nil, fault.New("NOT_SUPPORTED", "%s does not write %s with %%%c", name, sparkName(t), p.verb).WithHint("CAST it to STRING")
				}
				var err error
				if part, err = fill("coalesce(CAST(__1 AS VARCHAR), 'null')", args[p.arg-1]); err != nil {
					return nil, err
				}
			}
			out = callOperator("||", out, part)
		}
		return out, nil
	})
}
