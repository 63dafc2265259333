package sql

import (
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// from rewrites a FROM item.
func (r *rewriter) from(n node, in *scope) (rel, error) {
	if alias := n.str("alias"); alias != "" {
		if err := r.reserved(n, alias); err != nil {
			return rel{}, err
		}
	}
	var got rel
	var err error
	switch n.str("type") {
	case "EMPTY":
		return rel{}, nil
	case "BASE_TABLE":
		got, err = r.table(n, in)
	case "SUBQUERY":
		got, err = r.query(n.child("subquery").child("node"), in)
		got = rel{stream: got.stream}.called(n.str("alias"))
	case "JOIN":
		got, err = r.join(n, in)
	case "TABLE_FUNCTION":
		if generators[strings.ToLower(n.child("function").str("function_name"))] {
			r.generatorTable(n)
			return r.from(n, in)
		}
		err = r.tableFunction(n, in)
	case "EXPRESSION_LIST":
		err = r.values(n, in)
	case "PIVOT":
		got, err = r.unpivot(n, in)
	default:
		return rel{}, r.unknownKind(n)
	}
	if err == nil && got.stream && n.child("sample") != nil {
		err = r.unsupported(n, "TABLESAMPLE", "Filter by a hash of the key, such as md5(key) < '4'")
	}
	return got, err
}

func (r *rewriter) table(n node, in *scope) (rel, error) {
	name := n.str("table_name")
	var parts []string
	for _, part := range []string{n.str("catalog_name"), n.str("schema_name"), name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if n.child("at_clause") != nil {
		return rel{}, r.refuse(n, "reading %s at a version is not supported", strings.Join(parts, "."))
	}
	if len(parts) == 1 {
		if cte := in.find(name); cte != nil {
			for i, uses := range cte.uses {
				i.uses += uses
			}
			if alias := n.str("alias"); alias != "" {
				name = alias
			}
			return rel{stream: cte.rel.stream}.called(name), nil
		}
	}
	i := r.find(parts)
	if i == nil {
		err := fault.New("TABLE_OR_VIEW_NOT_FOUND", "the relation %s is not known here", strings.Join(parts, ".")).At(r.at(n))
		if len(r.inputs) > 0 {
			known := make([]string, len(r.inputs))
			for k, i := range r.inputs {
				known[k] = i.key
			}
			slices.Sort(known)
			err = err.WithHint("Known are %s", strings.Join(known, ", "))
		}
		return rel{}, err
	}
	i.uses++
	if n.str("alias") == "" {
		n["alias"] = name
	}
	n["catalog_name"], n["schema_name"], n["table_name"] = "", "", inputName(i.index)
	return rel{stream: i.stream, metadata: i.metadata}.called(n.str("alias")), nil
}

// find gives the input of a dotted name; an exact match goes before one that
// differs in case.
func (r *rewriter) find(parts []string) *input {
	name := strings.Join(parts, ".")
	var fold *input
	for _, i := range r.inputs {
		if i.key == name {
			return i
		}
		if strings.EqualFold(i.key, name) && fold == nil {
			fold = i
		}
	}
	return fold
}

func (r *rewriter) join(n node, in *scope) (rel, error) {
	left, err := r.from(n.child("left"), in)
	if err != nil {
		return rel{}, err
	}
	right, err := r.from(n.child("right"), in)
	if err != nil {
		return rel{}, err
	}
	got := rel{stream: left.stream || right.stream, metadata: left.metadata || right.metadata, names: append(left.names, right.names...)}
	if got.stream {
		if err := r.streamJoin(n, left, right); err != nil {
			return rel{}, err
		}
		r.sorted = true
	} else if n.str("ref_type") == "NATURAL" && got.metadata {
		return rel{}, r.refuse(n, "NATURAL JOIN of files is not supported: they share hidden columns").WithHint("Name the columns with USING")
	}
	switch n.str("join_type") {
	case "SEMI", "ANTI":
		got.metadata, got.names = left.metadata, left.names
	}
	if e := n.child("condition"); e != nil {
		err = r.expr(e, r.newPlace(in, got.stream))
	}
	return got, err
}

// streamJoin refuses joins whose result depends on more than one batch: those
// that also give rows of the other side which no row of the stream matches.
func (r *rewriter) streamJoin(n node, left, right rel) error {
	kind := n.str("join_type")
	switch ref := n.str("ref_type"); {
	case left.stream && right.stream:
		return r.unsupported(n, "a join of the stream with itself or another stream", "Join it with a table read without STREAM")
	case ref == "NATURAL":
		return r.unsupported(n, "NATURAL JOIN", "Name the columns with USING")
	case ref == "POSITIONAL":
		return r.unsupported(n, "POSITIONAL JOIN", "Join on a key")
	case left.stream && (kind == "RIGHT" || kind == "FULL"),
		right.stream && kind != "INNER" && kind != "RIGHT":
		return r.unsupported(n, strings.ReplaceAll(kind, "FULL", "FULL OUTER")+" JOIN that keeps rows of the table without a match", "Keep the stream's rows: stream LEFT JOIN table")
	}
	return nil
}

func (r *rewriter) tableFunction(n node, in *scope) error {
	f := n.child("function")
	name := strings.ToLower(f.str("function_name"))
	if !tableFunctions[name] {
		return fault.New("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "the table function %s is not allowed", f.str("function_name")).
			WithHint("Relations come from tables and, in a pipeline's SQL, from read_files; of functions there are unnest, range, generate_series, json_each and json_tree").
			At(r.at(n))
	}
	if name == "range" && len(n.list("column_name_alias")) == 0 {
		n["column_name_alias"] = []any{"id"}
		if n.str("alias") == "" {
			n["alias"] = "range"
		}
	}
	for _, a := range f.nodes("children") {
		if err := r.expr(a, r.newPlace(in, false)); err != nil {
			return err
		}
	}
	return nil
}

func (r *rewriter) values(n node, in *scope) error {
	for _, row := range n.list("values") {
		list, _ := row.([]any)
		for _, v := range list {
			m, ok := v.(map[string]any)
			if !ok {
				return r.unknownKind(n)
			}
			if err := r.expr(m, r.newPlace(in, false)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpivot rewrites UNPIVOT, which turns columns into rows; PIVOT is refused.
func (r *rewriter) unpivot(n node, in *scope) (rel, error) {
	if len(n.list("aggregates")) > 0 || len(n.list("unpivot_names")) == 0 {
		return rel{}, r.refuse(n, "PIVOT is not supported: its columns depend on the data")
	}
	source, err := r.from(n.child("source"), in)
	if err != nil {
		return rel{}, err
	}
	for _, p := range n.nodes("pivots") {
		if len(p.list("pivot_expressions")) > 0 || p.child("subquery") != nil || p.str("pivot_enum") != "" {
			return rel{}, r.refuse(n, "PIVOT is not supported: its columns depend on the data")
		}
		for _, e := range p.nodes("entries") {
			star := e.child("star_expr")
			if star == nil {
				continue
			}
			if err := r.expr(star, r.newPlace(in, source.stream)); err != nil {
				return rel{}, err
			}
			if err := hideFromStars(star, source); err != nil {
				return rel{}, err
			}
		}
	}
	name := n.str("alias")
	if name == "" {
		name = "unpivot"
	}
	return rel{stream: source.stream, metadata: source.metadata}.called(name), nil
}
