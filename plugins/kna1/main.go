// Command kna1 is a Weir plugin: the history of SAP's customers (KNA1), from the full extracts that
// arrive once a day and say nothing of what changed.
package main

import "github.com/weir-data/weir/sdk/go"

func init() { weir.Module("kna1", "1.0.0", pipeline) }

func main() {}

// pipeline declares the customers. A change of their segment opens a new version, any other change
// corrects the one that is open, a customer that an extract no longer has is closed.
func pipeline() {
	target := weir.ConfOr("kna1.target", "silver.customer")
	properties := map[string]string{}
	for key, property := range map[string]string{"kna1.max_shrink": "pipelines.cdc.maxShrink", "kna1.interval_view": "weir.intervalView"} {
		if v, ok := weir.Conf(key); ok {
			properties[property] = v
		}
	}
	weir.CreateStreamingTable(target,
		weir.Comment("One row per customer per validity interval (SCD2), from snapshot comparison."),
		weir.TableProperties(properties))
	weir.CreateAutoCDCFromSnapshotFlow(weir.AutoCDCFromSnapshot{
		Target:   target,
		Name:     "next_kna1_snapshot",
		Provider: nextSnapshot,
		ProviderInputs: []weir.Source{weir.Read(weir.ConfOr("kna1.source", defaultSource)).
			Columns("KUNNR", "NAME1", "STRAS", "PSTLZ", "ORT01", "LAND1", "KUKLA", "_tech_extract_date")},
		ProviderOutput:         weir.DDL(customerColumns),
		ProviderVersion:        "date",
		ProviderConf:           []string{"kna1.source"},
		Keys:                   []string{"customer_id"},
		StoredAsSCDType:        2,
		TrackHistoryColumnList: []string{"customer_segment"},
	})
}
