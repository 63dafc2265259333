package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

const features = `
CREATE OR REFRESH STREAMING TABLE raw AS SELECT id, name FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT, name STRING');
`

// snapshot gives a table as it is, or at a version.
func (p *project) snapshot(name string, version int64) *delta.Snapshot {
	p.t.Helper()
	table, err := p.open().Table(name)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := table.Snapshot(p.t.Context())
	if err == nil && version >= 0 {
		s, err = table.SnapshotAt(p.t.Context(), version)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// features gives what a snapshot says of its table, in one text.
func featuresOf(s *delta.Snapshot) string {
	var out []string
	for k, v := range s.Properties() {
		out = append(out, k+"="+v)
	}
	for _, f := range s.Schema().Fields() {
		comment, _ := f.Metadata.GetValue("comment")
		out = append(out, fmt.Sprintf("column %s null=%v comment=%q generated=%q", f.Name, f.Nullable, comment, s.Generated(f.Name)))
	}
	slices.Sort(out)
	return fmt.Sprintf("%s features=%v cluster=%v partition=%v comment=%q", strings.Join(out, "; "), s.Features(), s.ClusterColumns(), s.PartitionColumns(), s.Metadata().Description)
}

// What a definition asks of its table is in the log's first version, for a
// stream and for a view, and does not come again.
// covers A165 A166 A167 A168
func TestDeclaredFeaturesAreThereFromTheFirstVersion(t *testing.T) {
	cases := []struct {
		name, columns, clauses string
		want                   []string
	}{
		{"feed", "", "TBLPROPERTIES ('DELTA.enablechangedatafeed' = 'true')", []string{"delta.enableChangeDataFeed=true", "changeDataFeed"}},
		{"vectors", "", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')", []string{"delta.enableDeletionVectors=true", "deletionVectors"}},
		{"tracked", "", "TBLPROPERTIES ('delta.enableRowTracking' = 'true')", []string{"delta.enableRowTracking=true", "rowTracking", "domainMetadata"}},
		{"clustered", "", "CLUSTER BY (id, name)", []string{"cluster=[id name]", "clustering"}},
		{"parted", "", "PARTITIONED BY (id)", []string{"partition=[id]"}},
		{"retained", "", "TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 60 days', 'delta.deletedFileRetentionDuration' = 'interval 2 weeks')", []string{"delta.logRetentionDuration=interval 60 days", "delta.deletedFileRetentionDuration=interval 2 weeks"}},
		{"optimized", "", "TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true', 'delta.autoOptimize.autoCompact' = 'auto')", []string{"delta.autoOptimize.optimizeWrite=true", "delta.autoOptimize.autoCompact=auto"}},
		{"checked", "", "TBLPROPERTIES ('delta.constraints.positive' = 'id > 0')", []string{"delta.constraints.positive=id > 0", "checkConstraints"}},
		{"supported", "", "TBLPROPERTIES ('delta.feature.deletionvectors' = 'supported')", []string{"deletionVectors"}},
		{"generated", "(id BIGINT, name STRING, next BIGINT GENERATED ALWAYS AS (id + 1))", "", []string{`column next null=true comment="" generated="id + 1"`, "generatedColumns"}},
		{"keyed", "(id BIGINT NOT NULL COMMENT 'who', name STRING, CONSTRAINT pk PRIMARY KEY (id) RELY, FOREIGN KEY (name) REFERENCES names)", "COMMENT 'people'", []string{`column id null=false comment="who"`, `comment="people"`,
			`weir.keys=[{"name":"pk","kind":"primary","columns":["id"],"rely":true},{"kind":"foreign","columns":["name"],"references":"names"}]`}},
	}
	p := newProject(t)
	p.write("landing/1.json", `{"id": 1, "name": "a"}`)
	sql := features
	for _, c := range cases {
		sql += fmt.Sprintf("CREATE STREAMING TABLE s_%s %s %s AS SELECT * FROM STREAM(raw);\n", c.name, c.columns, c.clauses)
		sql += fmt.Sprintf("CREATE MATERIALIZED VIEW m_%s %s %s AS SELECT id, name FROM raw;\n", c.name, c.columns, c.clauses)
	}
	p.write("sql/a.sql", sql)
	p.completed(RunOptions{})
	versions := map[string]int64{}
	for _, c := range cases {
		for _, name := range []string{"s_" + c.name, "m_" + c.name} {
			got := featuresOf(p.snapshot(name, 0))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("version 0 of %s has no %s: %s", name, want, got)
				}
			}
			versions[name] = p.snapshot(name, -1).Version()
		}
	}
	p.completed(RunOptions{})
	for name, version := range versions {
		if got := p.snapshot(name, -1).Version(); got != version {
			t.Errorf("an update without anything new takes %s from version %d to %d", name, version, got)
		}
	}
}

// A table that is there follows its definition, with the rows it has.
// covers A165 A167 A168
func TestTablesFollowTheirDefinition(t *testing.T) {
	p := newProject(t)
	p.write("landing/1.json", `{"id": 1, "name": "a"}`)
	define := func(columns, clauses string) {
		p.write("sql/a.sql", features+
			fmt.Sprintf("CREATE STREAMING TABLE s %s %s AS SELECT * FROM STREAM(raw);\nCREATE MATERIALIZED VIEW m %s %s AS SELECT id, name FROM raw;\n", columns, clauses, columns, clauses))
	}
	define("", "TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 60 days', 'owner' = 'me') COMMENT 'old'")
	p.completed(RunOptions{})
	for i, c := range []struct {
		columns, clauses string
		want, gone       []string
		warning          string
	}{
		{"", "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'owner' = 'you') COMMENT 'new'", []string{"delta.enableChangeDataFeed=true", "changeDataFeed", "owner=you", `comment="new"`}, []string{"logRetention"}, "is on from"},
		{"", "CLUSTER BY (name)", []string{"cluster=[name]", `comment=""`}, []string{"owner", "declaredProperties", "delta.enableChangeDataFeed"}, ""},
		{"(id BIGINT NOT NULL COMMENT 'who', name STRING, PRIMARY KEY (id))", "CLUSTER BY (id)", []string{"cluster=[id]", `column id null=false comment="who"`, `"primary"`}, nil, ""},
		{"(id BIGINT, name STRING COMMENT 'what')", "", []string{"cluster=[]", `column id null=true comment=""`, `column name null=true comment="what"`}, []string{"weir.keys"}, ""},
		{"", "TBLPROPERTIES ('delta.constraints.positive' = 'id > 0')", []string{"delta.constraints.positive=id > 0", "checkConstraints"}, nil, ""},
		{"", "TBLPROPERTIES ('delta.constraints.positive' = 'id < 100')", []string{"delta.constraints.positive=id < 100"}, nil, ""},
		{"", "", nil, []string{"delta.constraints"}, ""},
	} {
		define(c.columns, c.clauses)
		p.write(fmt.Sprintf("landing/more%d.json", i), fmt.Sprintf(`{"id": %d, "name": "b"}`, i+2))
		r := p.completed(RunOptions{})
		for _, name := range []string{"s", "m"} {
			got := featuresOf(p.snapshot(name, -1))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("step %d: %s has no %s: %s", i, name, want, got)
				}
			}
			for _, gone := range c.gone {
				if strings.Contains(got, gone) {
					t.Errorf("step %d: %s still has %s: %s", i, name, gone, got)
				}
			}
			if warned := strings.Join(r.named(t, name).Warnings, "\n"); c.warning != "" && !strings.Contains(warned, c.warning) || c.warning == "" && warned != "" {
				t.Errorf("step %d: %s warns %q", i, name, warned)
			}
			p.wantRows("SELECT count(*) AS n, max(id) AS last FROM "+name, fmt.Sprintf(`{"n":%d,"last":%d}`, i+2, i+2))
		}
	}
	if told := strings.Join(p.logged("runtime_details"), "\n"); !strings.Contains(told, `"code":"TABLE_ALTERED","setting":"delta.enableChangeDataFeed = true, owner = you, without delta.logRetentionDuration, the comment"`) {
		t.Errorf("the event log does not tell of the changes: %s", told)
	}
	// What somebody sets by hand stays.
	table, err := p.open().Table("s")
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(t.Context(), delta.Commit{Read: s, Properties: map[string]string{"by.hand": "yes"}}); err != nil {
		t.Fatal(err)
	}
	p.completed(RunOptions{})
	if got := p.snapshot("s", -1).Properties()["by.hand"]; got != "yes" {
		t.Errorf("by.hand is %q", got)
	}

	// Rows there are that break a new rule keep the table as it is; a full
	// refresh does not look at them.
	define("", "TBLPROPERTIES ('delta.constraints.few' = 'id < 3')")
	r := p.run(RunOptions{Refresh: []string{"s"}})
	wantFault(t, r.named(t, "s").Err, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "few", "definition")
	r = p.run(RunOptions{FullRefresh: []string{"m"}})
	wantFault(t, r.named(t, "m").Err, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "few")
}

// What only new rows can give a table is refused before anything is written,
// told by a dry run, and done by a full refresh.
func TestOnlyAFullRefreshChangesTheLayout(t *testing.T) {
	for name, c := range map[string]struct{ before, after, code, want string }{
		"partitions":    {"PARTITIONED BY (id)", "", "DELTA_PARTITION_COLUMNS_CHANGED", "partition=[]"},
		"a partition":   {"", "PARTITIONED BY (name)", "DELTA_PARTITION_COLUMNS_CHANGED", "partition=[name]"},
		"an expression": {"(id BIGINT, name STRING, x BIGINT GENERATED ALWAYS AS (id + 1))", "(id BIGINT, name STRING, x BIGINT GENERATED ALWAYS AS (id + 2))", "DELTA_UNSUPPORTED_SCHEMA_CHANGE", `generated="id + 2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.write("landing/1.json", `{"id": 1, "name": "a"}`)
			p.write("sql/a.sql", features+"CREATE STREAMING TABLE s "+c.before+" AS SELECT * FROM STREAM(raw);")
			p.completed(RunOptions{})
			p.write("sql/a.sql", features+"CREATE STREAMING TABLE s "+c.after+" AS SELECT * FROM STREAM(raw);")
			before := p.lakeFiles()
			pl := p.open()
			_, err := pl.Run(t.Context(), RunOptions{})
			wantFault(t, err, c.code, "full refresh")
			if after := p.lakeFiles(); len(after) != len(before) {
				t.Errorf("%d files became %d", len(before), len(after))
			}
			plan, err := pl.Plan(t.Context())
			if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0], c.code) {
				t.Errorf("the plan warns %q: %v", plan.Warnings, err)
			}
			p.completed(RunOptions{FullRefresh: []string{"s"}})
			if got := featuresOf(p.snapshot("s", -1)); !strings.Contains(got, c.want) {
				t.Errorf("no %s: %s", c.want, got)
			}
			p.wantRows("SELECT id FROM s", `{"id":1}`)
		})
	}
}

// What has no meaning on one machine is told of.
// covers A166 A167
func TestFeaturesWithoutEffectAreToldOf(t *testing.T) {
	p := newProject(t)
	p.write("sql/a.sql", `
CREATE MATERIALIZED VIEW a CLUSTER BY AUTO TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'auto', 'delta.autoOptimize.optimizeWrite' = 'false', 'pipelines.autoOptimize.zOrderCols' = 'x') AS SELECT 1 AS x;`)
	plan, err := p.open().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range plan.Notices {
		got = append(got, n.Code+" "+n.Setting)
		if !strings.Contains(n.Message, "dev.bronze.a") || n.Line != 2 {
			t.Errorf("%+v does not say where", n)
		}
	}
	if want := []string{"IGNORED_SETTING delta.autoOptimize.autoCompact", "IGNORED_SETTING pipelines.autoOptimize.zOrderCols", "IGNORED_SETTING CLUSTER BY AUTO"}; !slices.Equal(got, want) {
		t.Errorf("notices %q, want %q", got, want)
	}
	p.completed(RunOptions{})
	if got := p.logged("runtime_details"); !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, `"setting":"delta.autoOptimize.autoCompact"`) }) {
		t.Errorf("the event log has %q", got)
	}
}

// covers A167 A168 A170
func TestFeaturesThatNoTableHasAreRefused(t *testing.T) {
	properties := func(pairs ...string) *abi.Dataset {
		d := &abi.Dataset{Name: "t", Type: abi.DatasetStreamingTable, TableProperties: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			d.TableProperties[pairs[i]] = pairs[i+1]
		}
		return d
	}
	for name, c := range map[string]struct {
		decl *abi.Dataset
		code string
		text []string
	}{
		"a name":             {properties("delta.enableChangeDataFeeds", "true"), "DELTA_UNKNOWN_CONFIGURATION", []string{"enableChangeDataFeed\""}},
		"no flag":            {properties("delta.appendOnly", "yes"), "DELTA_INVALID_PROPERTY", []string{"true or false"}},
		"no duration":        {properties("delta.logRetentionDuration", "30"), "DELTA_INVALID_PROPERTY", []string{"interval 30 days"}},
		"months":             {properties("delta.deletedFileRetentionDuration", "interval 1 month"), "DELTA_INVALID_PROPERTY", []string{"months"}},
		"no count":           {properties("delta.checkpointInterval", "0"), "DELTA_INVALID_PROPERTY", []string{"at least 1"}},
		"no mode":            {properties("delta.columnMapping.mode", "names"), "DELTA_INVALID_PROPERTY", []string{"none, name, id"}},
		"no size":            {properties("delta.targetFileSize", "large"), "DELTA_INVALID_PROPERTY", []string{"128mb"}},
		"twice":              {properties("delta.appendOnly", "true", "delta.appendonly", "false"), "INVALID_OPTION", []string{"twice"}},
		"ours":               {properties("weir.keys", "[]"), "UNKNOWN_OPTION", []string{"weir.keys"}},
		"append-only views":  {&abi.Dataset{Name: "t", Type: abi.DatasetMaterializedView, TableProperties: map[string]string{"delta.appendOnly": "true"}}, "DELTA_CANNOT_MODIFY_APPEND_ONLY", []string{"replaces"}},
		"five columns":       {&abi.Dataset{Name: "t", Type: abi.DatasetStreamingTable, ClusterBy: []string{"a", "b", "c", "d", "e"}}, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", []string{"at most 4"}},
		"a column twice":     {&abi.Dataset{Name: "t", Type: abi.DatasetStreamingTable, ClusterBy: []string{"a", "A"}}, "DELTA_DUPLICATE_COLUMNS_FOUND", []string{"twice"}},
		"parted and ordered": {&abi.Dataset{Name: "t", Type: abi.DatasetStreamingTable, ClusterBy: []string{"a"}, PartitionBy: []string{"b"}}, "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", []string{"one of them"}},
		"a view":             {&abi.Dataset{Name: "t", Type: abi.DatasetTemporaryView, TableProperties: map[string]string{"delta.appendOnly": "true"}}, "NOT_SUPPORTED", []string{"view"}},
	} {
		_, err := build(manifest(abi.Manifest{Datasets: []abi.Dataset{*c.decl}}))
		if !fault.Is(err, c.code) {
			t.Errorf("%s: %v, want [%s]", name, err, c.code)
			continue
		}
		for _, text := range append(c.text, "m.wasm") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v says nothing of %q", name, err, text)
			}
		}
	}

	p := newProject(t)
	for name, c := range map[string]struct{ clauses, code string }{
		"an array":         {"CLUSTER BY (ids)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"},
		"a flag":           {"CLUSTER BY (flag)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"},
		"a struct":         {"CLUSTER BY (s)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"},
		"bytes":            {"CLUSTER BY (b)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"},
		"a field":          {"CLUSTER BY (s.y)", "UNRESOLVED_COLUMN"},
		"a parted field":   {"PARTITIONED BY (s.x)", "UNRESOLVED_COLUMN"},
		"no condition":     {"TBLPROPERTIES ('delta.constraints.c' = 'id + 1')", "DATATYPE_MISMATCH"},
		"no column":        {"TBLPROPERTIES ('delta.constraints.c' = 'idd > 1')", "UNRESOLVED_COLUMN"},
		"an identity":      {"(id BIGINT GENERATED ALWAYS AS IDENTITY)", "NOT_SUPPORTED"},
		"a default":        {"(id BIGINT DEFAULT 1)", "NOT_SUPPORTED"},
		"a nullable key":   {"(id BIGINT, PRIMARY KEY (id))", "INVALID_KEY_CONSTRAINT"},
		"fine":             {"CLUSTER BY (s.x, id, day, at) TBLPROPERTIES ('delta.constraints.c' = 'id > 1 AND s.x IS NOT NULL')", ""},
		"fine (misc text)": {"CLUSTER BY (name, price)", ""},
	} {
		p.write("sql/a.sql", "CREATE MATERIALIZED VIEW m "+c.clauses+` AS
SELECT CAST(2 AS BIGINT) AS id, [1] AS ids, true AS flag, {'x': 1} AS s, CAST('a' AS BINARY) AS b, current_date() AS day, current_timestamp() AS at, 'n' AS name, CAST(1 AS DECIMAL(10,2)) AS price;`)
		err := p.plans(t)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want [%s]", name, err, c.code)
		} else if err != nil && !strings.Contains(err.Error(), "a.sql") {
			t.Errorf("%s: %v does not say where", name, err)
		}
	}
}
