package sql

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// covers A176: what reads the clock or a random source is not the same twice.
func TestVolatileQueriesAreKnown(t *testing.T) {
	e := openEngine(t)
	inputs := map[string]*arrow.Schema{"t": arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "seen", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true}}, nil)}
	for _, c := range []struct {
		text     string
		rule     string
		volatile bool
	}{
		{text: "SELECT id FROM t"},
		{text: "SELECT count(*) AS n, sum(id) AS s FROM t GROUP BY id % 3"},
		{text: "SELECT id, 'now' AS word FROM t WHERE seen > TIMESTAMP '2026-01-01 00:00:00'"},
		{text: "SELECT id, current_timestamp() AS at FROM t", volatile: true},
		{text: "SELECT id FROM t WHERE CAST(seen AS DATE) = current_date()", volatile: true},
		{text: "SELECT id, now() AS at FROM t", volatile: true},
		{text: "SELECT id FROM (SELECT id, random() AS r FROM t) AS x WHERE r < 0.5", volatile: true},
		{text: "WITH x AS (SELECT uuid() AS u, id FROM t) SELECT u, id FROM x", volatile: true},
		{text: "SELECT id FROM t ORDER BY random()", volatile: true},
		{text: "SELECT id, seen FROM t", rule: "seen < current_timestamp()", volatile: true},
		{text: "SELECT id, seen FROM t", rule: "id > 0"},
	} {
		q := Query{Text: c.text}
		if c.rule != "" {
			q.Expectations = []string{c.rule}
		}
		why, err := e.Volatile(context.Background(), q, inputs)
		if err != nil || (why != "") != c.volatile {
			t.Errorf("%s %s: %q, %v", c.text, c.rule, why, err)
		}
	}
}
