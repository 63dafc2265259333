package sql

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// Where Spark casts a text to the other side's type or refuses, DuckDB would
// make texts of both sides in silence.
func TestSetOperationsOfOtherKindsAreRefused(t *testing.T) {
	e := openEngine(t)
	schemas := map[string]*arrow.Schema{"a": schemaOf(t, "i INT, s STRING, d DATE, ts TIMESTAMP, ok BOOLEAN, x DECIMAL(10,2), l ARRAY<INT>")}
	for text, refused := range map[string]bool{
		"SELECT 1 AS a UNION ALL SELECT 'a'":                                                        true,
		"SELECT i FROM a UNION SELECT s FROM a":                                                     true,
		"SELECT i FROM a INTERSECT SELECT s FROM a":                                                 true,
		"SELECT i FROM a EXCEPT SELECT s FROM a":                                                    true,
		"SELECT s FROM a UNION ALL SELECT d FROM a":                                                 true,
		"SELECT ok FROM a UNION ALL SELECT i FROM a":                                                true,
		"SELECT i FROM a UNION ALL SELECT x FROM a UNION ALL SELECT s FROM a":                       true,
		"SELECT i, s FROM a UNION ALL BY NAME SELECT i AS s, i FROM a":                              true,
		"SELECT * FROM (SELECT i FROM a UNION ALL SELECT s FROM a)":                                 true,
		"WITH c AS (SELECT i AS v FROM a UNION ALL SELECT s FROM a) SELECT v FROM c":                true,
		"WITH c AS (SELECT s AS v FROM a) SELECT i FROM a UNION ALL SELECT v FROM c":                true,
		"SELECT i FROM a WHERE i IN (SELECT i FROM a UNION SELECT s FROM a)":                        true,
		"SELECT i FROM a UNION ALL SELECT x FROM a":                                                 false,
		"SELECT i, s FROM a UNION ALL BY NAME SELECT s, i FROM a":                                   false,
		"SELECT NULL AS v UNION ALL SELECT 'a'":                                                     false,
		"SELECT s FROM a UNION ALL SELECT NULL":                                                     false,
		"SELECT d FROM a UNION ALL SELECT ts FROM a":                                                false,
		"SELECT l FROM a UNION ALL SELECT l FROM a":                                                 false,
		"SELECT CAST(i AS STRING) FROM a UNION ALL SELECT s FROM a":                                 false,
		"WITH c AS (SELECT s AS v FROM a) SELECT s FROM a UNION ALL SELECT v FROM c":                false,
		"SELECT (SELECT max(v) FROM (SELECT i AS v UNION ALL SELECT o.i)) AS m FROM a AS o":         false,
		"SELECT i FROM a UNION ALL (SELECT i / 2 FROM a ORDER BY 1 LIMIT 1) ORDER BY 1 NULLS FIRST": false,
	} {
		_, err := e.Describe(t.Context(), Query{Text: text}, schemas)
		switch {
		case refused && fault.CodeOf(err) != "DATATYPE_MISMATCH":
			t.Errorf("%s: %v", text, err)
		case !refused && err != nil:
			t.Errorf("%s: %v", text, err)
		}
	}
}
