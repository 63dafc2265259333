package sql

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// Guest bounds a query whose text is not the operator's own, such as a plugin's.
// The relations that it may read are the inputs of the query and nothing else; a
// field that is 0 has its default.
type Guest struct {
	Params []Param // values for ? or $1, $2 …
	Rows   int64   // query_rows: of the result; 10,000,000
	Bytes  int64   // query_bytes: of the result; 1 GiB
	Time   time.Duration
}

// The defaults of a guest's bounds, and what bounds its text: nobody writes such
// a query by hand, and the parser's time is not counted.
const (
	guestRows  = 10_000_000
	guestBytes = 1 << 30
	guestTime  = 5 * time.Minute

	guestText     = 64 << 10
	guestParts    = 5000
	guestDepth    = 100
	guestWidth    = 500 // columns of one SELECT
	guestPattern  = 256
	guestRepeated = 1000 // what {n,m} of a pattern may sum up to
)

func (g Guest) withDefaults() Guest {
	if g.Rows <= 0 {
		g.Rows = guestRows
	}
	if g.Bytes <= 0 {
		g.Bytes = guestBytes
	}
	if g.Time <= 0 {
		g.Time = guestTime
	}
	return g
}

//go:embed guest.txt
var guestList string

// guestFunctions are what guests may call.
var guestFunctions = sync.OnceValue(func() map[string]functionKind { return readFunctions(guestList) })

// guestKinds are the nodes a guest's tree may have, by type; an expression by its class.
// Any node that DuckDB brings anew is refused until it stands here.
var guestKinds = func() map[string]bool {
	out := map[string]bool{}
	for _, kind := range strings.Fields(`SELECT_NODE SET_OPERATION_NODE BASE_TABLE SUBQUERY JOIN EMPTY EXPRESSION_LIST
		COLUMN_REF CONSTANT FUNCTION WINDOW CAST OPERATOR CASE COMPARISON CONJUNCTION BETWEEN LAMBDA STAR PARAMETER
		ORDER_MODIFIER LIMIT_MODIFIER DISTINCT_MODIFIER`) {
		out[kind] = true
	}
	return out
}()

// guestOperators are the types that nodes of class OPERATOR may have.
var guestOperators = func() map[string]bool {
	out := map[string]bool{}
	for _, kind := range strings.Fields(`OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL COMPARE_IN COMPARE_NOT_IN OPERATOR_COALESCE
		ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT ARRAY_CONSTRUCTOR OPERATOR_NULLIF`) {
		out[kind] = true
	}
	return out
}()

// guestChecker walks the tree of a guest's text before anything is made of it.
type guestChecker struct {
	r      *rewriter
	params []Param
	used   []bool
	parts  int
}

// checkGuestText bounds a text before it is parsed: DuckDB's parser takes long for
// some, and nothing stops it.
func checkGuestText(text string, w fault.Where) error {
	if len(text) > guestText {
		return overGuest("query_text", guestText, fmt.Sprintf("the text of %d bytes", len(text))).At(w)
	}
	depth := 0
	for _, c := range []byte(text) {
		switch c {
		case '(', '[', '{':
			if depth++; depth > guestDepth {
				return overGuest("query_depth", guestDepth, "the nesting of the text").At(w)
			}
		case ')', ']', '}':
			depth--
		}
	}
	return nil
}

func overGuest(limit string, value int64, what string) *fault.Error {
	return fault.New(limitCode, "%s is over the limit %s = %d", what, limit, value)
}

// statement checks a whole text.
func (c *guestChecker) statement(statement node) error {
	if err := c.walk(map[string]any(statement.child("node")), 0); err != nil {
		return err
	}
	for i, used := range c.used {
		if !used {
			return fault.New("INVALID_QUERY_PARAMETER", "the query has no place for parameter %d of %d", i+1, len(c.params)).At(c.r.origin.where(0))
		}
	}
	statement["named_param_map"] = []any{}
	return nil
}

func (c *guestChecker) walk(v any, depth int) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := c.walk(e, depth); err != nil {
				return err
			}
		}
	case map[string]any:
		return c.node(v, depth+1)
	}
	return nil
}

func (c *guestChecker) node(n node, depth int) error {
	if c.parts++; c.parts > guestParts*4 { // a node of DuckDB's has several of JSON
		return overGuest("query_parts", guestParts, "the query").At(c.r.at(n))
	}
	if depth > guestDepth*4 {
		return overGuest("query_depth", guestDepth, "the nesting of the query").At(c.r.at(n))
	}
	if err := c.kind(n); err != nil {
		return err
	}
	for key, e := range n {
		switch key {
		case "query_location", "type":
			continue
		case "cast_type":
			if err := c.castType(n, e); err != nil {
				return err
			}
			continue
		}
		if err := c.walk(e, depth); err != nil {
			return err
		}
	}
	return nil
}

// kind checks one node.
func (c *guestChecker) kind(n node) error {
	class, typ := n.str("class"), n.str("type")
	kind := class
	if kind == "" {
		kind = typ
	}
	switch {
	case kind == "" || strings.HasPrefix(kind, "ORDER_DEFAULT") || kind == "ASCENDING" || kind == "DESCENDING":
		return nil // a wrapper around nodes
	case class == "" && n["value"] != nil && n["is_null"] != nil:
		return nil
	case !guestKinds[kind]:
		return c.refuse(n, "the SQL construct "+strings.ToLower(strings.ReplaceAll(kind, "_", " ")))
	}
	switch kind {
	case "SELECT_NODE":
		if width := len(n.list("select_list")); width > guestWidth {
			return overGuest("query_columns", guestWidth, fmt.Sprintf("a SELECT of %d columns", width)).At(c.r.at(n))
		}
		if n.child("sample") != nil {
			return c.refuse(n, "a sample, which is another each time,")
		}
	case "BASE_TABLE":
		if n.child("sample") != nil {
			return c.refuse(n, "a sample, which is another each time,")
		}
	case "OPERATOR":
		if !guestOperators[typ] {
			return c.refuse(n, "the SQL construct "+strings.ToLower(strings.ReplaceAll(typ, "_", " ")))
		}
	case "FUNCTION", "WINDOW":
		return c.function(n)
	case "PARAMETER":
		return c.parameter(n)
	case "STAR":
		if n.flag("columns") || n.child("expr") != nil {
			return c.refuse(n, "COLUMNS(…)")
		}
	}
	return nil
}

// castType refuses a type that is written with an expression.
func (c *guestChecker) castType(n node, t any) error {
	var err error
	visit(t, func(part node) {
		if class := part.str("class"); class != "" && class != "CONSTANT" && class != "TYPE" {
			err = c.refuse(n, "a type made by an expression")
		}
	})
	return err
}

func (c *guestChecker) refuse(n node, what string) error {
	return fault.New("NOT_ALLOWED_FOR_GUESTS", "%s is not allowed in SQL that comes with a module", what).
		WithHint("Let the pipeline's own SQL do it, and read what it gives").At(c.r.at(n))
}

func (c *guestChecker) function(n node) error {
	name := strings.ToLower(n.str("function_name"))
	if s := strings.ToLower(n.str("schema")); s != "" && s != "main" || n.str("catalog") != "" {
		return c.refuse(n, "the function "+n.str("schema")+"."+name)
	}
	if _, ok := guestFunctions()[name]; !ok {
		return c.refuse(n, "the function "+name)
	}
	args := n.nodes("children")
	if pattern := patternArgument(name, len(args)); pattern > 0 {
		return c.pattern(n, name, args[pattern])
	}
	return nil
}

// patternArgument says which argument of a function is a pattern; 0 is none.
func patternArgument(name string, args int) int {
	switch name {
	case "~~", "!~~", "~~*", "!~~*", "like_escape", "ilike_escape", "not_like_escape", "not_ilike_escape",
		"regexp_extract", "regexp_full_match", "regexp_like", "regexp_matches", "regexp_replace", "rlike", "split",
		"strftime", "strptime", "try_strptime", "date_format", "json_extract", "json_extract_string", "get_json_object", "from_json":
		if args > 1 {
			return 1
		}
	}
	return 0
}

// pattern holds patterns to constants of bounded length: they decide how long a match takes.
func (c *guestChecker) pattern(n node, name string, pattern node) error {
	for pattern.str("class") == "CAST" {
		pattern = pattern.child("child")
	}
	text, constant := constantText(pattern)
	if !constant {
		var number int
		if _, err := fmt.Sscanf(pattern.str("identifier"), "%d", &number); err == nil && number > 0 && number <= len(c.params) {
			return checkPattern(name, c.params[number-1].Value, c.r.at(n))
		}
		return c.refuse(n, "a pattern of "+name+" that is no constant text")
	}
	return checkPattern(name, text, c.r.at(n))
}

func checkPattern(name, text string, w fault.Where) error {
	if len(text) > guestPattern {
		return overGuest("query_pattern", guestPattern, fmt.Sprintf("a pattern of %s of %d bytes", name, len(text))).At(w)
	}
	sum, number, inside := 0, 0, false
	for _, ch := range []byte(text) {
		switch {
		case ch == '{':
			inside, number = true, 0
		case inside && isDigit(ch):
			number = min(number*10+int(ch-'0'), 1<<20)
		default:
			if inside {
				sum += number
			}
			inside, number = inside && ch == ',', 0
		}
	}
	if sum > guestRepeated {
		return overGuest("query_pattern_repeats", guestRepeated, "what a pattern of "+name+" repeats").At(w)
	}
	return nil
}

// parameter puts the value in for a ?.
func (c *guestChecker) parameter(n node) error {
	var number int
	if _, err := fmt.Sscanf(n.str("identifier"), "%d", &number); err != nil || number < 1 || number > len(c.params) {
		return fault.New("INVALID_QUERY_PARAMETER", "there is no value for the parameter %s; %d were given", n.str("identifier"), len(c.params)).
			WithHint("Parameters are ? or $1, $2 …").At(c.r.origin.where(0))
	}
	value, err := c.params[number-1].tree()
	if err != nil {
		return fault.Place(err, "INVALID_QUERY_PARAMETER", c.r.origin.where(0))
	}
	c.used[number-1] = true
	n.become(value)
	return nil
}
