package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// signatureTypes are the letters of a signature: what a function takes. A value of
// another type is cast as Spark does it by itself; '.' takes any.
var signatureTypes = map[byte]sqlType{
	's': {id: "VARCHAR"}, 'd': {id: "DATE"}, 't': {id: zonedTime}, 'n': {id: wallTime}, 'i': {id: "INTEGER"}, 'l': {id: "BIGINT"}, 'f': {id: "DOUBLE"},
	'b': {id: "BOOLEAN"}, 'x': {id: "BLOB"},
}

// signed gives the meaning of a function from its signature and template: "sii"
// and a text with __1, __2, __3.
func signed(name, letters, template string) meaning {
	return func(types []sqlType, args []map[string]any) (node, error) {
		out, err := coerce(name, letters, types, args)
		if err != nil {
			return nil, err
		}
		return fill(template, out...)
	}
}

// coerce casts arguments to what a signature takes.
func coerce(name, letters string, types []sqlType, args []map[string]any) ([]any, error) {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
		if letters[i] == '.' {
			continue
		}
		to := signatureTypes[letters[i]]
		from := types[i]
		if from.equal(to) {
			continue
		}
		if !implicit(from, to) {
			return nil, fault.New("DATATYPE_MISMATCH", "argument %d of %s is %s, not %s", i+1, name, sparkName(from), sparkName(to)).WithHint("CAST it")
		}
		v, err := cast(a, from, to, false)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// implicit reports the casts that an argument gets without being asked for.
func implicit(from, to sqlType) bool {
	switch {
	case from.null():
		return true
	case to.id == "INTEGER":
		return from.id == "TINYINT" || from.id == "SMALLINT" || from.id == "BIGINT" || from.text() || strings.HasPrefix(from.id, "U") || from.id == "HUGEINT"
	case to.id == "BIGINT":
		return from.whole() || from.text() || strings.HasPrefix(from.id, "U") || from.id == "HUGEINT"
	case to.floating():
		return from.whole() || from.floating() || from.decimal() || from.text()
	case to.text():
		return from.whole() || from.floating() || from.decimal() || from.id == "BOOLEAN" || from.dated() || from.id == "UUID" || from.id == "TIME"
	case to.id == "DATE", to.id == zonedTime, to.id == wallTime:
		return from.dated() || from.text()
	case to.id == "BLOB":
		return from.text()
	}
	return false
}

// splitSignature reads "sii: template"; without letters every argument may be of any type.
func splitSignature(text string, arguments int) (letters, template string) {
	head, rest, ok := strings.Cut(text, ": ")
	if !ok || len(head) != arguments || strings.Trim(head, "sdtnilfbx.") != "" {
		return "", text
	}
	return head, rest
}

// sparkFunction gives a function of sparkFunctions its meaning; false: it is none.
func (r *rewriter) sparkFunction(n node, name string, args []any, ctx place) (bool, error) {
	key := fmt.Sprintf("%s/%d", name, len(args))
	text, ok := sparkFunctions[key]
	if !ok {
		return false, nil
	}
	letters, template := splitSignature(text, len(args))
	if strings.Trim(letters, ".") == "" {
		out, err := fill(template, args...)
		if err == nil {
			n.become(out)
		}
		return true, err
	}
	return true, r.wait(n, key, args, ctx, signed(name, letters, template))
}
