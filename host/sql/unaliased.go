package sql

import (
	"github.com/weir-data/weir/host/fault"
)

// CheckAliases refuses a query that computes a column without naming it: what
// DuckDB calls it is no name to read it by, nor the one that Spark gives.
func (s *Statement) CheckAliases() error {
	q := s.Select()
	tree, o, err := parseSelect(q.Text, q.places())
	if err != nil {
		return err
	}
	top := tree.child("node")
	for top.str("type") == "SET_OPERATION_NODE" { // the first side names the columns
		if sides := top.nodes("children"); len(sides) > 0 {
			top = sides[0]
		} else {
			top = top.child("left")
		}
	}
	for _, item := range top.nodes("select_list") {
		if item.str("alias") != "" {
			continue
		}
		switch item.str("class") {
		case "COLUMN_REF", "STAR":
			continue
		}
		text, err := printExpressions([]node{item})
		if err != nil {
			return err
		}
		return fault.New("CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", "the column %s of %s has no name", text[0], s.Name).
			WithHint("Give it one with AS").At(o.where(max(item.location(), 0)))
	}
	return nil
}
