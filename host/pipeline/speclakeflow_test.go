package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/catalog"
)

// The JSON of a Lakeflow pipeline is a spec, once it says where the tables are.
//
// covers A144 A145 A180 A219 B6
func TestTheJSONOfALakeflowPipelineIsASpec(t *testing.T) {
	s, err := parseText(t, `{
  "name": "my_pipeline", "storage": "lake",
  "catalog": "my_catalog", "target": "my_schema",
  "serverless": false, "continuous": false, "development": true, "photon": true,
  "channel": "PREVIEW", "edition": "advanced", "id": "1234",
  "configuration": {
    "pipelines.numUpdateRetryAttempts": "3",
    "spark.sql.shuffle.partitions": "auto",
    "spark.sql.adaptive.enabled": "true"
  },
  "clusters": [{"label": "default", "autoscale": {"min_workers": 2, "max_workers": 8, "mode": "ENHANCED"}}],
  "libraries": [{"glob": {"include": "/Workspace/my_pipeline/**"}}, {"file": {"path": "more.sql"}}],
  "tags": {"owner": "data-team"},
  "event_log": {"catalog": "audit_catalog", "schema": "pipeline_logs", "name": "my_pipeline_events"},
  "notifications": [], "filters": {}, "trigger": {"manual": {}},
  "run_as": {"user_name": "somebody@example.com"},
  "restart_window": {"start_hour": 2, "days_of_week": ["SATURDAY"], "time_zone_id": "America/Los_Angeles"},
  "environment": {"dependencies": ["pandas>=2.0.0"]},
  "deployment": {"kind": "BUNDLE"}, "root_path": "/Workspace", "budget_policy_id": "b"
}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Catalog != "my_catalog" || s.Schema != "my_schema" || len(s.Libraries) != 2 || !s.Development || s.Edition != editionAdvanced {
		t.Errorf("%+v", s)
	}
	if want := (catalog.Name{Catalog: "audit_catalog", Schema: "pipeline_logs", Table: "my_pipeline_events"}); *s.EventLog != want {
		t.Errorf("event log %v", s.EventLog)
	}
	if s.settings != (settings{maxFlowRetries: 0, maxUpdateRetries: 3}) {
		t.Errorf("development retries nothing but what is asked for, not %+v", s.settings)
	}
	var told []string
	for i, n := range s.Notices {
		told = append(told, n.Setting)
		if n.Code != "IGNORED_SETTING" || n.Line == 0 || !strings.HasPrefix(n.Message, n.Setting+" has no effect here: ") {
			t.Errorf("%+v", n)
		}
		if i > 0 && n.Line < s.Notices[i-1].Line {
			t.Errorf("%s comes before what stands above it", n.Setting)
		}
	}
	for _, name := range []string{"serverless", "photon", "channel", "id", "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "clusters", "tags", "run_as", "restart_window", "environment", "deployment", "root_path", "budget_policy_id"} {
		if !strings.Contains(" "+strings.Join(told, " ")+" ", " "+name+" ") {
			t.Errorf("%s is accepted in silence", name)
		}
	}
	if len(told) != 14 {
		t.Errorf("told of %v", told)
	}
	t.Run("production", func(t *testing.T) {
		s, err := parseText(t, "name: p\nstorage: s\n", nil)
		if err != nil || s.settings != (settings{maxFlowRetries: 2, maxUpdateRetries: 5}) {
			t.Errorf("%+v, %v", s.settings, err)
		}
	})
}

// covers B6
func TestSparksSpecFileIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"spark-pipeline.yml", "spark-pipeline.yaml", "weir.yaml"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("name: p\nstorage: file:///tmp/lake\ndatabase: d\nlibraries: [{glob: {include: 'transformations/**'}}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := LoadSpec(dir, nil)
		if err != nil || s.Path != path || s.Storage != "/tmp/lake" || s.Schema != "d" {
			t.Fatalf("%+v, %v", s, err)
		}
		if name != "spark-pipeline.yml" {
			second := filepath.Join(dir, "spark-pipeline.yml")
			if err := os.WriteFile(second, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadSpec(dir, nil)
			wantFault(t, err, "AMBIGUOUS_SPEC", name, "spark-pipeline.yml")
			if err := os.Remove(second); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// covers A7 A9
func TestVolumesAreFolders(t *testing.T) {
	s, err := parseText(t, `
name: p
storage: s
volumes:
  ${env:DWH_CATALOG}.Bronze.landing: ./landing
  ops.pipelines.bucket: s3://lake/landing
  a.b.c: /data
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/Volumes/dwh_test/bronze/landing/shop_order":    "/project/landing/shop_order",
		"/Volumes/dwh_test/bronze/landing/":              "/project/landing/",
		"/Volumes/dwh_test/bronze/landing":               "/project/landing",
		"dbfs:/Volumes/DWH_TEST/bronze/landing/x/*.json": "/project/landing/x/*.json",
		"dbfs:///Volumes/dwh_test/bronze/landing/x":      "/project/landing/x",
		"file:/Volumes/dwh_test/bronze/landing/x":        "/project/landing/x",
		"/volumes/ops/pipelines/bucket/orders/dt=*":      "s3://lake/landing/orders/dt=*",
		"/Volumes/a/b/c/d":                               "/data/d",
		"./landing":                                      "./landing",
		"/srv/Volumes/a/b/c":                             "/srv/Volumes/a/b/c",
		"s3://bucket/Volumes/a/b/c":                      "s3://bucket/Volumes/a/b/c",
	} {
		if got, err := s.locate(path); err != nil || got != want {
			t.Errorf("%s is %q, not %q (%v)", path, got, want, err)
		}
	}
	for path, c := range map[string][2]string{
		"/Volumes/dwh_prod/bronze/landing/x": {"VOLUME_NOT_FOUND", `Did you mean "dwh_test.bronze.landing"?`},
		"/Volumes/other/x/y":                 {"VOLUME_NOT_FOUND", "volumes: {other.x.y: ./folder}"},
		"/Volumes/a/b":                       {"INVALID_VOLUME_PATH", "/Volumes/catalog/schema/volume"},
		"/Volumes/a/*/c/d":                   {"INVALID_VOLUME_PATH", "/Volumes/catalog/schema/volume"},
		"/Volumes/a/b/c/../../etc":           {"INVALID_VOLUME_PATH", "out of the volume"},
		"/Volumes/a/b/../c":                  {"INVALID_VOLUME_PATH", "/Volumes/catalog/schema/volume"},
		"dbfs:/mnt/landing":                  {"NOT_SUPPORTED", "no DBFS"},
	} {
		_, err := s.locate(path)
		wantFault(t, err, c[0], c[1])
	}
}

// covers A192
func TestAnEditionWithoutExpectationsRefusesThem(t *testing.T) {
	for _, edition := range []string{"CORE", "PRO"} {
		p := newProject(t, landingConf, "edition: "+edition)
		p.write("sql/bronze.sql", bronzeOrders)
		p.write("landing/a.json", ordersLine(1, 2, ""))
		p.completed(RunOptions{})
		p.write("sql/silver/orders.sql", silverOrders)
		_, err := p.tryOpen()
		wantFault(t, err, "UNSUPPORTED_BY_EDITION", edition, "positive", "ADVANCED", "silver", "orders.sql, line 1")
	}
}
