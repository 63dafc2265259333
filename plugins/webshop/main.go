// Command webshop is a Weir plugin: the order documents of a web shop, one JSON document per order in
// bronze, become typed orders and order lines in silver.
package main

import "github.com/weir-data/weir/sdk/go"

func init() { weir.Module("webshop", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	documents := weir.ReadStream(weir.ConfOr("webshop.source", "bronze.shop_order"))
	if name := weir.ConfOr("webshop.orders", "silver.shop_order"); name != "" {
		weir.StreamingTable(name,
			documents.Columns("order_id", "order_ts", "customer_id", "currency", "total_amount", "items"), orders,
			weir.Comment("One row per web shop order, typed."),
			weir.RowAligned(),
			weir.Output(
				weir.Col("order_id", "string").NotNull().Comment("the shop's order number"),
				weir.Col("order_ts", "timestamp").Comment("when the order was placed"),
				weir.Col("customer_id", "string"),
				weir.Col("currency", "string").Comment("ISO 4217, upper case"),
				weir.Col("total_amount", "decimal(18,2)").Comment("in currency"),
				weir.Col("line_count", "int").Comment("items of the order"),
			),
			weir.Expect("has_customer", "customer_id IS NOT NULL"),
			weir.ExpectOrQuarantine("has_total", "total_amount IS NOT NULL"),
			weir.ExpectOrQuarantine("has_timestamp", "order_ts IS NOT NULL"),
			weir.OnRowError(weir.QuarantineRowErrors))
	}
	if name := weir.ConfOr("webshop.order_lines", "silver.shop_order_line"); name != "" {
		weir.StreamingTable(name,
			documents.Columns("order_id", "currency", "items"), orderLines,
			weir.Comment("One row per item of a web shop order."),
			weir.Output(
				weir.Col("order_id", "string").NotNull(),
				weir.Col("line_number", "int").NotNull().Comment("place in the document, from 1"),
				weir.Col("sku", "string").NotNull(),
				weir.Col("quantity", "bigint").NotNull(),
				weir.Col("price", "decimal(18,2)").NotNull().Comment("of one piece, in currency"),
				weir.Col("line_amount", "decimal(18,2)").NotNull().Comment("quantity × price"),
				weir.Col("currency", "string"),
			),
			weir.Expect("positive_quantity", "quantity > 0"),
			weir.OnRowError(weir.QuarantineRowErrors))
	}
}
