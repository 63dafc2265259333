// Command sap is a Weir plugin: SAP sales documents (VBAK, VBAP) under canonical names, and the net
// amount of each item in euro.
package main

import "github.com/weir-data/weir/sdk/go"

func init() { weir.Module("sap", "1.0.0", pipeline) }

func main() {}

// pipeline declares the views. SAP names in, canonical names out; what drives AUTO CDC (change_type,
// change_seq) passes through untouched.
func pipeline() {
	if source := weir.ConfOr("sap.vbak_source", "bronze.sap_vbak"); source != "" {
		weir.TemporaryView("vbak_typed",
			weir.ReadStream(source), nil,
			weir.Comment("SAP sales order headers under canonical names. Renaming only, no logic."),
			weir.RowAligned(),
			weir.Passthrough("VBELN AS order_id", "KUNNR AS customer_id", "ERDAT AS order_date",
				"LOEKZ AS deletion_flag", "change_type", "change_seq"))
	}
	if source := weir.ConfOr("sap.vbap_source", "bronze.sap_vbap"); source != "" {
		weir.TemporaryView("vbap_typed",
			weir.ReadStream(source).Columns("NETWR", "WAERK", "ERDAT"), convert,
			weir.Comment("SAP sales order items under canonical names, their net amount converted to euro."),
			weir.With(weir.Read(weir.ConfOr("sap.rates", "silver.ecb_rates")).Columns("rate_date", "currency", "rate")),
			weir.RowAligned(),
			weir.Passthrough("VBELN AS order_id", "POSNR AS line_number", "change_type", "change_seq"),
			weir.Output(weir.Col("net_amount_eur", "decimal(18,2)").
				Comment("net amount of the item in euro, at the ECB rate of the document date or the last one before it")),
			weir.UsesConf(maxAgeKey),
			weir.Reuse())
	}
}
