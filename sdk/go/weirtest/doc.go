// Package weirtest runs dataset functions natively, under go test: no host, no WebAssembly, the same
// bytes.
//
//	func TestConvert(t *testing.T) {
//		m := weirtest.Load(t, map[string]string{"sap.max_rate_age_days": "5"})
//		got := m.Run("vbap_typed",
//			weirtest.Table("NETWR decimal(15,2), WAERK string, ERDAT date",
//				weirtest.Row{"100.00", "USD", "2024-10-11"}),
//			weirtest.Table("rate_date date, currency string, rate decimal(18,6)",
//				weirtest.Row{"2024-10-11", "USD", "1.0938"}))
//		got.Equal(t, weirtest.Row{"91.42"})
//	}
//
// It plays the host's part: it projects the columns that the manifest names, carries passthrough
// columns around row-aligned functions, leaves out rows that the function reported, and holds the
// function to the ABI's rules. It does not check what only the real host can: types without a Delta
// type, limits, determinism. The module's package must be linked into the test, so that its
// weir.Module was called; tests of one module run one at a time.
package weirtest
