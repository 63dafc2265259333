package plugins

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/sdk/go"
	"github.com/weir-data/weir/sdk/go/weirtest"
)

func nothing(*weir.Call) error { return nil }

// everything declares at least one of each thing that the SDK can declare.
func everything() {
	weir.StreamingTable("bronze.shop_order",
		weir.ReadStreamFormat("cloudFiles").
			Option("cloudFiles.format", "json").
			Option("cloudFiles.schemaHints", "order_id STRING, total_amount DECIMAL(18,2)").
			Load(weir.ConfOr("dwh.landing", "landing")+"/shop_order"),
		nothing,
		weir.Comment("raw \"documents\"\n"),
		weir.Schema(append(weir.DDL("order_id string not null, dt date"), weir.Col("items", "array<struct<sku: string, `net price`: decimal(18,2) not null>>").Comment("nested"))...),
		weir.TableProperties(map[string]string{"delta.enableChangeDataFeed": "true", "quality": "bronze"}),
		weir.PartitionBy("dt"),
		weir.Private(),
		weir.ExpectAll(weir.Rule{Name: "has_id", Condition: "order_id IS NOT NULL"}, weir.Rule{Name: "old", Condition: "dt > '2020-01-01'", Null: weir.NullPasses}),
		weir.ExpectOrFail("f", "true"), weir.ExpectOrDrop("d", "true"), weir.ExpectOrQuarantine("q", "true", weir.NullPasses),
		weir.ExpectAllOrFail(weir.Rule{Name: "f2", Condition: "true"}), weir.ExpectAllOrDrop(weir.Rule{Name: "d2", Condition: "true"}),
		weir.ExpectAllOrQuarantine(weir.Rule{Name: "q2", Condition: "true"}), weir.Expect("w", "true"),
		weir.OnRowError(weir.QuarantineRowErrors))
	weir.TemporaryView("typed", weir.ReadStream("bronze.shop_order").Columns("order_id"), nothing,
		weir.With(weir.Read("silver.rates")), weir.RowAligned(), weir.Passthrough("a AS b", "c"),
		weir.Output(weir.Col("x", "decimal256(76,3)").NotNull(), weir.Col("y", "timestamp(ms,'Europe/Zurich')"), weir.Col("z", "fixed_size_array<time(ns),3>")),
		weir.Reuse(), weir.UsesConf("shop.*", "dwh.catalog"))
	weir.TemporaryView("renamed", weir.ReadStream("bronze.shop_order"), nil, weir.RowAligned(), weir.Passthrough("order_id AS id"))
	weir.MaterializedView("gold.revenue", weir.Read("typed"), nothing, weir.Query(), weir.ClusterBy("day", "country"))
	weir.StreamingTable("silver.seen", weir.ReadStream("typed").Option("readChangeFeed", "true").Option("startingVersion", "latest"), nothing, weir.Stateful())
	weir.CreateStreamingTable("silver.all_orders", weir.Comment("target of flows"), weir.Expect("w", "true"))
	weir.AppendFlow("silver.all_orders", "web", weir.ReadStream("typed").Option("skipChangeCommits", "true"), nil)
	weir.AppendFlow("silver.all_orders", "shop", weir.ReadStream("renamed"), nothing, weir.OnRowError(weir.SkipRowErrors))
	weir.AppendFlow("silver.all_orders", "history", weir.Read("old_orders"), nothing, weir.Once())
	weir.CreateStreamingTable("silver.customer")
	weir.CreateAutoCDCFlow(weir.AutoCDC{Target: "silver.customer", Source: "typed", Keys: []string{"id"}, SequenceBy: "struct(ts, n)",
		ApplyAsDeletes: "op = 'D'", ApplyAsTruncates: "op = 'T'", IgnoreNullUpdates: true, ExceptColumnList: []string{"op"}, StoredAsSCDType: 1, Once: true})
	weir.CreateAutoCDCFlow(weir.AutoCDC{Target: "silver.customer", Name: "second", Source: "renamed", Keys: []string{"id", "mandt"}, SequenceBy: "n",
		IgnoreNullUpdatesExceptColumnList: []string{"n"}, TiesLastBy: []string{"offset"}, ColumnList: []string{"id"}, StoredAsSCDType: 2, TrackHistoryExceptColumnList: []string{"street"}, OnRowError: weir.FailOnRowError})
	weir.CreateStreamingTable("silver.kna1")
	weir.CreateAutoCDCFromSnapshotFlow(weir.AutoCDCFromSnapshot{Target: "silver.kna1", Provider: nothing, ProviderInputs: []weir.Source{weir.Read("bronze.sap_kna1")},
		Keys: []string{"customer_id"}, StoredAsSCDType: 2, TrackHistoryColumnList: []string{"customer_segment"}})
	weir.CreateAutoCDCFromSnapshotFlow(weir.AutoCDCFromSnapshot{Target: "silver.kna1", Name: "from_view", Source: "renamed", Keys: []string{"customer_id"}})
	weir.Sink("kafka_out", "kafka", map[string]string{"topic": "orders", "kafka.bootstrap.servers": "localhost:9092"})
	weir.AppendFlow("kafka_out", "to_kafka", weir.ReadStream("typed"), nil)
	weir.ForeachBatchSink("merge_out", weir.ReadStream("typed"), nothing, weir.Into(weir.AppendTo("log"), weir.MergeInto("target", "id")))
}

func init() { weir.Module("everything", "0.1.0", everything) }

// covers A56 A77 A96 A97 A108 A111 A112 A113 A114 A115 A130 A132
func TestAManifestOfEverythingIsValid(t *testing.T) {
	text := weirtest.Load(t, map[string]string{"dwh.landing": "/landing"}).Manifest()
	m, err := abi.ParseManifest(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	back, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	for in, out := range map[*[]byte]*any{&text: &want, &back: &got} {
		if err := json.Unmarshal(*in, out); err != nil {
			t.Fatal(err)
		}
	}
	// The parser fills in defaults, so what the SDK wrote must be a part of what it read.
	if path, ok := contains(got, want); !ok {
		t.Errorf("the manifest lost %s\nwrote %s\nread  %s", path, text, back)
	}
	if n := len(m.Functions); n != 9 {
		t.Errorf("%d functions", n)
	}
	if !bytes.Equal(text, weirtest.Load(t, map[string]string{"dwh.landing": "/landing"}).Manifest()) {
		t.Error("the manifest differs from one description to the next")
	}
}

// contains reports whether all of want is in got, and else the path of what is not.
func contains(got, want any) (string, bool) {
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for k, v := range want {
			if path, ok := contains(object[k], v); !ok {
				return "." + k + path, false
			}
		}
		return "", true
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return "[]", false
		}
		for i := range want {
			if path, ok := contains(list[i], want[i]); !ok {
				return "[]" + path, false
			}
		}
		return "", true
	}
	return "", got == want
}
