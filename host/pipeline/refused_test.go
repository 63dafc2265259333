package pipeline

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// lakeFiles gives every file of the storage with its content.
func (p *project) lakeFiles() map[string]string {
	p.t.Helper()
	files := map[string]string{}
	root := filepath.Join(p.dir, "lake")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// Whatever is wrong with a project is refused before an update writes anything,
// a full refresh included.
// covers A113 A114 A115 A117 A122 A124 A189 A190
func TestABadProjectLeavesTheStorageUntouched(t *testing.T) {
	const good = `
CREATE OR REFRESH STREAMING TABLE raw AS SELECT id FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT');
CREATE OR REFRESH MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM raw;
`
	for name, c := range map[string]struct{ sql, code string }{
		"a streaming table becomes a materialized view": {
			`CREATE OR REFRESH MATERIALIZED VIEW raw AS SELECT id FROM read_files('landing', format => 'json', schemaHints => 'id BIGINT');`, "CANNOT_CHANGE_DATASET_TYPE"},
		"a materialized view becomes a streaming table": {
			`CREATE OR REFRESH STREAMING TABLE counted AS SELECT id AS n FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT');`, "CANNOT_CHANGE_DATASET_TYPE"},
		"a table becomes a view":      {strings.Replace(good, "MATERIALIZED VIEW counted", "VIEW counted", 1), "CANNOT_CHANGE_DATASET_TYPE"},
		"another pipeline's view":     {good + `CREATE VIEW theirs AS SELECT 1 AS x;`, "TABLE_OWNED_BY_ANOTHER_PIPELINE"},
		"a stream of an mv":           {good + `CREATE STREAMING TABLE t AS SELECT n FROM STREAM(counted);`, "STREAMING_FROM_MATERIALIZED_VIEW"},
		"an mv of a stream":           {good + `CREATE MATERIALIZED VIEW t AS SELECT id FROM STREAM(raw);`, "INVALID_FLOW_QUERY_TYPE"},
		"a flow into nothing":         {good + `CREATE FLOW f AS INSERT INTO t BY NAME SELECT id FROM STREAM(raw);`, "TABLE_OR_VIEW_NOT_FOUND"},
		"a cycle over two flows":      {good + `CREATE STREAMING TABLE t; CREATE STREAMING TABLE u AS SELECT id FROM STREAM(t); CREATE FLOW f AS INSERT INTO t BY NAME SELECT id FROM STREAM(u);`, "CIRCULAR_DEPENDENCY"},
		"another pipeline's table":    {`CREATE STREAMING TABLE theirs AS SELECT id FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT');`, "TABLE_OWNED_BY_ANOTHER_PIPELINE"},
		"a stream of another's mv":    {`CREATE STREAMING TABLE t AS SELECT id FROM STREAM(dev.gold.theirs);`, "STREAMING_FROM_MATERIALIZED_VIEW"},
		"a table of nobody":           {`CREATE STREAMING TABLE foreign_one AS SELECT id FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT');`, "TABLE_OR_VIEW_ALREADY_EXISTS"},
		"auto cdc of an unknown tie":  {good + `CREATE STREAMING TABLE t TBLPROPERTIES ('pipelines.cdc.ties' = 'first'); CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw) KEYS (id) SEQUENCE BY id;`, "INVALID_OPTION"},
		"append beside auto cdc":      {good + `CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw) KEYS (id) SEQUENCE BY id; CREATE FLOW g AS INSERT INTO t BY NAME SELECT id FROM STREAM(raw);`, "INCOMPATIBLE_FLOWS"},
		"a name of a quarantine":      {good + `CREATE STREAMING TABLE q (CONSTRAINT c EXPECT (id > 0) ON VIOLATION QUARANTINE) AS SELECT id FROM STREAM(raw); CREATE STREAMING TABLE Q_QUARANTINE AS SELECT id FROM STREAM(raw);`, "PIPELINE_DUPLICATE_IDENTIFIERS"},
		"a name that differs by case": {good + `CREATE STREAMING TABLE RAW AS SELECT id FROM STREAM read_files('landing', format => 'json');`, "PIPELINE_DUPLICATE_IDENTIFIERS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.write("landing/1.json", `{"id": 1}`)
			p.write("sql/a.sql", `
CREATE OR REFRESH STREAMING TABLE theirs AS SELECT id FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT');
CREATE OR REFRESH MATERIALIZED VIEW gold.theirs AS SELECT id FROM theirs;`)
			p.write("weir.yaml", "name: other\ncatalog: dev\nschema: bronze\nstorage: lake\nlibraries:\n  - glob: {include: sql/**}\n")
			p.completed(RunOptions{})
			p.write("weir.yaml", "name: test\ncatalog: dev\nschema: bronze\nstorage: lake\nlibraries:\n  - glob: {include: sql/**}\n")
			p.write("sql/a.sql", good)
			p.completed(RunOptions{})
			p.write("lake/dev/bronze/foreign_one/_delta_log/00000000000000000000.json", `{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"3b1f0c0e-7a59-4f1f-8f11-0d4a54a6f3aa","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{}}}
`)
			before := p.lakeFiles()
			p.write("sql/a.sql", c.sql)
			for _, opt := range []RunOptions{{}, {FullRefreshAll: true}} {
				pl, err := p.tryOpen()
				if err == nil {
					_, err = pl.Run(t.Context(), opt)
					if closing := pl.Close(t.Context()); closing != nil {
						t.Error(closing)
					}
				}
				if !fault.Is(err, c.code) {
					t.Errorf("%+v: %v, want [%s]", opt, err, c.code)
				}
			}
			if !maps.Equal(before, p.lakeFiles()) {
				t.Error("the storage is another one")
			}
		})
	}
}
