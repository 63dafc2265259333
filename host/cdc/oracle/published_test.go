package oracle

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// vector is a published example: changes, how the flow is declared, and the
// table that must come out, a row a line as rules.rowText writes it.
type vector struct {
	name    string
	rules   rules
	changes []change
	want    string
}

func userChange(id int64, name, city val, what op, seq int64) change {
	return change{key: []val{id}, seq: seq, op: what, row: []val{name, city}}
}

var (
	userID      = []arrow.Field{field("id", number)}
	userColumns = []arrow.Field{field("name", textType), field("city", textType)}

	// The changes of the documentation of AUTO CDC.
	users = []change{
		userChange(124, "Raul", "Oaxaca", upsert, 1),
		userChange(123, "Isabel", "Monterrey", upsert, 1),
		userChange(125, "Mercedes", "Tijuana", upsert, 2),
		userChange(126, "Lily", "Cancun", upsert, 2),
		userChange(123, nil, nil, remove, 6),
		userChange(125, "Mercedes", "Guadalajara", upsert, 6),
		userChange(125, "Mercedes", "Mexicali", upsert, 5),
		userChange(123, "Isabel", "Chihuahua", upsert, 5),
	}
)

func named(changes ...any) []change {
	var out []change
	for i := 0; i < len(changes); i += 2 {
		c := userChange(1, changes[i+1], nil, upsert, int64(changes[i].(int)))
		if changes[i+1] == nil {
			c.op = remove
		}
		out = append(out, c)
	}
	return out
}

var vectors = []vector{
	{"users, scd 1", rules{scd: 1}, users, `
id=124 name="Raul" city="Oaxaca"
id=125 name="Mercedes" city="Guadalajara"
id=126 name="Lily" city="Cancun"`},
	{"users, scd 2", rules{scd: 2}, users, `
id=123 name="Isabel" city="Monterrey" [1,5)
id=123 name="Isabel" city="Chihuahua" [5,6)
id=124 name="Raul" city="Oaxaca" [1,-)
id=125 name="Mercedes" city="Tijuana" [2,5)
id=125 name="Mercedes" city="Mexicali" [5,6)
id=125 name="Mercedes" city="Guadalajara" [6,-)
id=126 name="Lily" city="Cancun" [2,-)`},
	{"users, scd 2, tracked * except city", rules{scd: 2, tracked: []string{"name"}}, users, `
id=123 name="Isabel" city="Chihuahua" [1,6)
id=124 name="Raul" city="Oaxaca" [1,-)
id=125 name="Mercedes" city="Guadalajara" [2,-)
id=126 name="Lily" city="Cancun" [2,-)`},
	{"a late change cuts a run in two", rules{scd: 2}, named(5, "Alice", 10, "Alice", 15, "Alice", 20, "Charlie", 12, "Bob"), `
id=1 name="Alice" [5,12)
id=1 name="Bob" [12,15)
id=1 name="Alice" [15,20)
id=1 name="Charlie" [20,-)`},
	{"a run without the late change", rules{scd: 2}, named(5, "Alice", 10, "Alice", 15, "Alice", 20, "Charlie"), `
id=1 name="Alice" [5,20)
id=1 name="Charlie" [20,-)`},
	{"SPARK-58937", rules{scd: 2}, named(10, "a", 11, "a", 12, nil, 20, "b"), `
id=1 name="a" [10,12)
id=1 name="b" [20,-)`},
	{"equal values on both sides of a removal", rules{scd: 2}, named(1, "a", 2, nil, 3, "a", 4, "a"), `
id=1 name="a" [1,2)
id=1 name="a" [3,-)`},
	{"removals without a row", rules{scd: 2}, named(1, nil, 2, nil, 3, "a", 4, nil, 5, nil), `
id=1 name="a" [3,4)`},
	{"a removal before its row leaves no ghost", rules{scd: 1}, named(1, "a", 2, nil), ``},
	{"a row after its removal lives", rules{scd: 1}, named(1, "a", 2, nil, 3, "b", 4, nil, 5, "d"), `
id=1 name="d"`},
	{"NULLs say nothing, scd 1", rules{scd: 1, ignoreNull: []string{"name", "city"}}, []change{
		userChange(1, "a", nil, upsert, 1), userChange(1, nil, "x", upsert, 2), userChange(1, nil, nil, upsert, 3), userChange(1, nil, "y", upsert, 4),
	}, `
id=1 name="a" city="y"`},
	{"NULLs say nothing, scd 2", rules{scd: 2, ignoreNull: []string{"name", "city"}}, []change{
		userChange(1, "a", nil, upsert, 1), userChange(1, nil, "x", upsert, 2), userChange(1, nil, nil, upsert, 3), userChange(1, nil, "y", upsert, 4),
	}, `
id=1 name="a" [1,2)
id=1 name="a" city="x" [2,4)
id=1 name="a" city="y" [4,-)`},
	{"NULLs of one column say nothing", rules{scd: 1, ignoreNull: []string{"name"}}, []change{
		userChange(1, "a", "x", upsert, 1), userChange(1, nil, nil, upsert, 2),
	}, `
id=1 name="a"`},
	{"nothing is inherited from before a removal", rules{scd: 2, ignoreNull: []string{"name", "city"}}, []change{
		userChange(1, "a", "x", upsert, 1), userChange(1, nil, nil, remove, 2), userChange(1, nil, "y", upsert, 3),
	}, `
id=1 name="a" city="x" [1,2)
id=1 city="y" [3,-)`},
}

// lines gives the rows of a vector, sorted.
func lines(want string) []string {
	out := strings.FieldsFunc(want, func(r rune) bool { return r == '\n' })
	slices.Sort(out)
	return out
}

// The model stands between the rules and all other tests, so the published
// examples hold it first. covers B2
func TestTheModelGivesThePublishedTables(t *testing.T) {
	for _, v := range vectors {
		v.rules.keys, v.rules.columns, v.rules.sequence = userID, userColumns, number
		same(t, v.name, v.rules.table(v.changes), lines(v.want))
	}
	// A TRUNCATE at 3 leaves what was changed after it.
	v := vectors[0]
	v.rules.keys, v.rules.columns = userID, userColumns
	same(t, "truncate", v.rules.table(append(slices.Clone(users), change{op: truncate, seq: int64(3)})), []string{`id=125 name="Mercedes" city="Guadalajara"`})
}

// same compares sorted rows; it trims them, since a row ends with a space where there is no interval.
func same(t testing.TB, what string, got, want []string) bool {
	t.Helper()
	trim := func(rows []string) []string {
		out := make([]string, len(rows))
		for i, r := range rows {
			out[i] = strings.TrimSpace(r)
		}
		slices.Sort(out)
		return out
	}
	got, want = trim(got), trim(want)
	if slices.Equal(got, want) {
		return true
	}
	t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	return false
}
