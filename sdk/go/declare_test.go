//go:build !wasip1

package weir

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-data/weir/sdk/go/internal/host"
)

// declared runs definitions in a registry of their own and gives the manifest or the failure.
func declared(t *testing.T, definitions func()) (manifest string, failure string) {
	t.Helper()
	saved := registered
	registered = registry{}
	defer func() { registered = saved }()
	h := &describeHost{}
	defer host.Use(host.Use(h))
	Module("m", "1", definitions)
	if status := describe(); (status == 0) != (h.failure == "") {
		t.Fatalf("status %d with failure %q", status, h.failure)
	}
	return h.manifest, h.failure
}

type describeHost struct {
	host.Absent
	manifest, failure string
}

func (h *describeHost) ResultWrite(p []byte) int32 { h.manifest = string(p); return 0 }
func (h *describeHost) Fail(text string)           { h.failure = text }

func nothing(*Call) error { return nil }

func TestWrongUseIsReportedNotPanicked(t *testing.T) {
	for name, c := range map[string]struct {
		define func()
		want   []string
	}{
		"dataset twice": {func() {
			TemporaryView("v", ReadStream("a"), nothing)
			StreamingTable("V", ReadStream("a"), nothing)
		}, []string{"dataset V is declared twice"}},
		"function twice": {func() {
			TemporaryView("v", ReadStream("a"), nothing)
			TemporaryView("v", ReadStream("a"), nothing)
		}, []string{"dataset v is declared twice", "a function of the name v already"}},
		"no name":         {func() { CreateStreamingTable("") }, []string{"a dataset without a name"}},
		"nil function":    {func() { TemporaryView("v", ReadStream("a"), nil) }, []string{"TemporaryView v: needs a function"}},
		"empty source":    {func() { TemporaryView("v", Source{}, nothing) }, []string{"a Source that is not made by"}},
		"no dataset":      {func() { TemporaryView("v", ReadStream(""), nothing) }, []string{"reads neither a dataset nor a format"}},
		"format, no path": {func() { TemporaryView("v", ReadStreamFormat("cloudFiles"), nothing) }, []string{"cloudFiles without Load"}},
		"batch, options":  {func() { TemporaryView("v", Read("a").Option("k", "v"), nothing) }, []string{"options are for a stream"}},
		"dataset, path":   {func() { TemporaryView("v", ReadStream("a").Load("p"), nothing) }, []string{"Load is for"}},
		// covers A2 A122
		"table from batch": {func() { StreamingTable("t", Read("a"), nothing) }, []string{"cannot create a streaming table from a batch query"}},
		"view from stream": {func() { MaterializedView("t", ReadStream("a"), nothing) }, []string{"a materialized view reads no stream"}},
		"two streams":      {func() { TemporaryView("v", ReadStream("a"), nothing, With(ReadStream("b"))) }, []string{"only the first input may be a stream"}},
		"view with table's options": {func() {
			TemporaryView("v", ReadStream("a"), nothing, PartitionBy("p"), ClusterBy("c"), Private(), TableProperties(nil), Once())
		}, []string{"PartitionBy does not apply", "ClusterBy does not apply", "Private does not apply", "TableProperties does not apply", "Once does not apply"}},
		"empty option":     {func() { TemporaryView("v", ReadStream("a"), nothing, Option{}) }, []string{"an empty Option"}},
		"function options": {func() { CreateStreamingTable("t", RowAligned(), Reuse()) }, []string{"RowAligned does not apply", "Reuse does not apply"}},
		"bad type":         {func() { TemporaryView("v", ReadStream("a"), nothing, Output(Col("x", "decimall"))) }, []string{"Output, column x", "expected a type"}},
		"bad DDL":          {func() { CreateStreamingTable("t", Schema(DDL("x int y int")...)) }, []string{"Schema, column x int y int"}},
		"column twice":     {func() { TemporaryView("v", ReadStream("a"), nothing, Output(Col("x", "int"), Col("X", "int"))) }, []string{"Output has column X twice"}},
		"pass without":     {func() { TemporaryView("v", ReadStream("a"), nothing, Passthrough("a")) }, []string{"Passthrough needs RowAligned"}},
		"pass twice": {func() {
			TemporaryView("v", ReadStream("a"), nothing, RowAligned(), Passthrough("a AS b", "c AS B", "a AS d", ""))
		}, []string{"gives column B twice", "takes column a twice", "is no column"}},
		// covers A100
		"expectation twice": {func() { CreateStreamingTable("t", Expect("e", "true"), ExpectOrDrop("e", "true"), Expect("", "")) },
			[]string{"expectation e is declared twice", "Expect needs a name and a condition"}},
		"policy":          {func() { CreateStreamingTable("t", OnRowError("ignore")) }, []string{"is none of fail, skip, quarantine"}},
		"merge, no keys":  {func() { ForeachBatchSink("s", ReadStream("a"), nothing, Into(MergeInto("t"))) }, []string{"MergeInto t needs keys"}},
		"sink, no format": {func() { Sink("s", "", nil) }, []string{"Sink s: needs a format"}},
		"batch flow":      {func() { AppendFlow("t", "f", Read("a"), nothing) }, []string{"add Once"}},
		"flow twice": {func() {
			AppendFlow("t", "f", ReadStream("a"), nil)
			AppendFlow("t", "F", ReadStream("b"), nil)
		}, []string{"target t has two flows of the name F"}},
		"flow into a view": {func() {
			TemporaryView("v", ReadStream("a"), nothing)
			AppendFlow("v", "f", ReadStream("a"), nil)
		}, []string{"writes to v, which is a temporary_view"}},
		"flow, no target": {func() { AppendFlow("", "f", ReadStream("a"), nil) }, []string{"needs a target"}},
		"CDC": {func() {
			CreateAutoCDCFlow(AutoCDC{Target: "t", StoredAsSCDType: 3, ColumnList: []string{"a"}, ExceptColumnList: []string{"b"}})
		},
			[]string{"needs a Source", "needs SequenceBy", "needs Keys", "not 1 or 2", "ColumnList and ExceptColumnList"}},
		// covers A67
		"truncate in type 2": {func() {
			CreateAutoCDCFlow(AutoCDC{Target: "t", Source: "s", Keys: []string{"k"}, SequenceBy: "n", StoredAsSCDType: 2, ApplyAsTruncates: "x"})
		}, []string{"ApplyAsTruncates is for SCD type 1"}},
		"nulls and ties": {func() {
			CreateAutoCDCFlow(AutoCDC{Target: "t", Source: "s", Keys: []string{"k"}, SequenceBy: "n", IgnoreNullUpdates: true, IgnoreNullUpdatesColumnList: []string{}, TiesLastBy: []string{}})
		}, []string{"more than one way", "IgnoreNullUpdatesColumnList is empty", "TiesLastBy is empty"}},
		"snapshot": {func() {
			CreateAutoCDCFromSnapshotFlow(AutoCDCFromSnapshot{Target: "t", TrackHistoryColumnList: []string{"a"}})
		},
			[]string{"needs either a Source or a Provider", "needs Keys", "is for SCD type 2"}},
		"module twice": {func() { Module("n", "2") }, []string{"Module was called twice: m and n"}},
		"a panic":      {func() { panic("in a definition") }, []string{"[PANIC] in a definition, in "}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest, failure := declared(t, c.define)
			if manifest != "" {
				t.Errorf("a manifest was written: %s", manifest)
			}
			for _, want := range c.want {
				if !strings.Contains(failure, want) {
					t.Errorf("%q does not say %q", failure, want)
				}
			}
		})
	}
}

func TestManifestEscapesText(t *testing.T) {
	const odd = "quote \" backslash \\ newline \n tab \t bell \a umlaut ü bad \xff end"
	manifest, failure := declared(t, func() { CreateStreamingTable("t", Comment(odd)) })
	var m struct{ Datasets []struct{ Comment string } }
	if err := json.Unmarshal([]byte(manifest), &m); err != nil || failure != "" {
		t.Fatal(err, failure)
	}
	if want := strings.ToValidUTF8(odd, "\uFFFD"); m.Datasets[0].Comment != want {
		t.Errorf("the comment came back as %q", m.Datasets[0].Comment)
	}
}

func TestConfigurationReadWhileDeclaringIsGrantedToTheFunctions(t *testing.T) {
	manifest, failure := declared(t, func() {
		TemporaryView("v", ReadStream(ConfOr("m.source", "a")), nothing, UsesConf("m.own", "m.source"))
	})
	if failure != "" || !strings.Contains(manifest, `"conf":["m.own","m.source"]`) {
		t.Errorf("%s %s", manifest, failure)
	}
}

func FuzzContext(f *testing.F) {
	f.Add(`{"pipeline": "dwh", "update_id": "\u00fc\ud83d\ude00", "flow": "f", "batch_id": 7, "task": 0, "full_refresh": false, "batch_timestamp": "2026-07-30T06:00:00.000001Z", "latest_version": {"type": "date", "value": "2026-07-29"}, "later": [{"a": null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var x Context
		if !x.read(text) {
			return
		}
		var want struct {
			Pipeline *string `json:"pipeline"`
		}
		if err := json.Unmarshal([]byte(text), &want); err == nil && want.Pipeline != nil && strings.Count(strings.ToLower(text), "pipeline") == 1 && strings.ToValidUTF8(text, "") == text && *want.Pipeline != x.Pipeline && !strings.ContainsRune(*want.Pipeline, 0xFFFD) {
			t.Errorf("pipeline is %q, want %q", x.Pipeline, *want.Pipeline)
		}
	})
}

func TestContextIsRead(t *testing.T) {
	var x Context
	if !x.read(`{"pipeline":"dwh","update_id":"u\n\u00fc\ud83d\ude00","flow":"f","batch_id":7,"task":2,"full_refresh":true,"batch_timestamp":"2026-07-30T06:00:00.000001Z","latest_version":{"type":"int","value":12},"new":{"a":[1,null,"x"]}}`) {
		t.Fatal("it was refused")
	}
	want := Context{"dwh", "u\nü😀", "f", 7, 2, true, 1785391200000001, &Version{"int", "12"}}
	if *x.LatestVersion != *want.LatestVersion {
		t.Errorf("version %v", x.LatestVersion)
	}
	x.LatestVersion = want.LatestVersion
	if x != want {
		t.Errorf("got %+v", x)
	}
}
