// Package weir is the SDK for dataset functions that run in Weir as WebAssembly modules.
//
// A module registers datasets and flows the way the Lakeflow API does, and gives each a function
// that turns Arrow batches into Arrow batches:
//
//	func init() { weir.Module("shop", "1.0.0", pipeline) }
//
//	func pipeline() {
//		weir.TemporaryView("orders_typed",
//			weir.ReadStream("bronze.shop_order").Columns("order_id", "currency"),
//			typed,
//			weir.Output(weir.Col("currency", "string")))
//	}
//
//	func typed(c *weir.Call) error {
//		in, out := c.Input(0), c.Output()
//		for in.Next() {
//			b := in.Batch()
//			currency, to := b.Column("currency").String(), out.Column("currency").String()
//			for i := range b.Len() {
//				to.Append(strings.ToUpper(currency.At(i)))
//			}
//			if err := out.Flush(); err != nil {
//				return err
//			}
//		}
//		return in.Err()
//	}
//
// It reads the received bytes in place: a view (Strings, Numbers, Decimals, …) is valid until the next
// call of Next, and costs no copy. It imports neither fmt nor encoding/json nor anything that
// reflects, so that a module stays under 2.5 MB.
//
// Errors are sticky: asking a batch for a column it has not, or for the wrong type, gives a view of
// nulls and records the error; the call fails with it at the end whatever the function returns.
//
// The package does not run anything by itself. In a module the host drives it through the exports
// weir_describe and weir_call; in a native test package weirtest does, through the same bytes.
package weir
