package testscripts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// covers A10 A23
//
// TestRealOrdersAndRates runs 4,675 real order documents and the ECB's whole
// history through bronze, plugins/sap and silver. All orders are in euro, so the
// fixture currencymix gives each another currency by its number, among them one
// that does not exist; some are moved to days past the last rate. Every document
// is accounted for, and every amount equals a computation in SQL over whole numbers.
func TestRealOrdersAndRates(t *testing.T) {
	shared := sharedDir(t)
	dir := t.TempDir()
	const documents = 4675
	files := map[string]string{
		"weir.yaml": `name: real
catalog: dev
schema: bronze
storage: ./lake
configuration:
  sap.vbak_source: ""
  currencymix.source: bronze.order_items
  sap.vbap_source: sap_vbap_mixed
libraries:
  - glob: {include: sql/**}
plugins:
  - path: ` + filepath.Join(pluginDir(t), "sap.wasm") + `
    grants: {conf: [sap.*]}
  - path: ` + filepath.Join(pluginDir(t), "currencymix.wasm") + `
    grants: {conf: [currencymix.*]}
`,
		"sql/bronze.sql": `
CREATE OR REFRESH STREAMING TABLE bronze.orders AS
SELECT *, _metadata.file_path AS _tech_source_file
FROM STREAM read_files('` + filepath.Join(shared, "data/orders_json") + `', format => 'json', pathGlobFilter => 'ecommerce_orders.ndjson.gz');

CREATE OR REFRESH STREAMING TABLE bronze.ecb_rates AS
SELECT * FROM STREAM read_files('` + filepath.Join(shared, "data/ecb") + `', format => 'csv', inferColumnTypes => 'false', pathGlobFilter => 'eurofxref-hist_2026-04-13.csv');

-- The orders in the columns that plugins/sap converts.
CREATE OR REFRESH STREAMING TABLE bronze.order_items AS
SELECT
  CAST(order_id AS STRING)                       AS VBELN,
  '000010'                                       AS POSNR,
  CAST(taxful_total_price AS DECIMAL(18,2))      AS NETWR,
  CASE WHEN order_id % 97 = 3 THEN DATE '2026-06-01' ELSE CAST(left(CAST(order_date AS STRING), 10) AS DATE) END AS ERDAT,
  'I'                                            AS change_type,
  order_id                                       AS change_seq
FROM STREAM(bronze.orders);
`,
		"sql/silver.sql": `
CREATE OR REFRESH STREAMING TABLE silver.ecb_rates AS
SELECT CAST(rate_date AS DATE) AS rate_date, quote.currency AS currency, CAST(quote.rate AS DECIMAL(18,6)) AS rate
FROM (SELECT ` + "`Date`" + ` AS rate_date, UNNEST([` + ecbQuotes(t, shared) + `]) AS quote FROM STREAM(bronze.ecb_rates))
WHERE quote.rate <> 'N/A';

CREATE OR REFRESH STREAMING TABLE silver.mixed AS SELECT * FROM STREAM(sap_vbap_mixed);
CREATE OR REFRESH STREAMING TABLE silver.lines TBLPROPERTIES ('weir.onRowError' = 'quarantine') AS SELECT * FROM STREAM(vbap_typed);
`,
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, dir, "run")

	expect := func(what, sql, want string) {
		t.Helper()
		if got := query(t, dir, sql); got != want {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	expect("documents in bronze", "SELECT count(*) FROM bronze.orders", fmt.Sprint(documents))
	expect("documents with rescued data", "SELECT count(*) FROM bronze.orders WHERE _rescued_data IS NOT NULL", "0")
	expect("items converted or quarantined", "SELECT (SELECT count(*) FROM silver.lines) + (SELECT count(*) FROM silver.lines_quarantine)", fmt.Sprint(documents))
	expect("orders of twelve currencies", "SELECT count(DISTINCT WAERK) FROM silver.mixed", "12")
	expect("items of the currency that does not exist are in quarantine",
		"SELECT (SELECT count(*) FROM silver.mixed WHERE WAERK = 'XXX') - (SELECT count(*) FROM silver.lines_quarantine WHERE _code = 'UNKNOWN_CURRENCY')", "0")
	expect("items past the last rate are in quarantine",
		"SELECT (SELECT count(*) FROM silver.mixed WHERE ERDAT > DATE '2026-05-01' AND WAERK NOT IN ('EUR', 'XXX')) - (SELECT count(*) FROM silver.lines_quarantine WHERE _code = 'RATE_TOO_OLD')", "0")
	expect("some of both", "SELECT count(DISTINCT _code) FROM silver.lines_quarantine", "2")
	expect("no other reason", "SELECT count(*) FROM silver.lines_quarantine WHERE _code NOT IN ('UNKNOWN_CURRENCY', 'RATE_TOO_OLD')", "0")
	expect("days of rates", "SELECT count(DISTINCT rate_date) > 6000 FROM silver.ecb_rates", "true")

	// Half away from zero over whole numbers: DuckDB's decimal division gives DOUBLE.
	expect("amounts that differ from SQL over HUGEINT", `
WITH rated AS (
  SELECT i.VBELN, CAST(i.NETWR * 100 AS HUGEINT) AS cents, CAST(r.rate * 1000000 AS HUGEINT) AS micros,
         row_number() OVER (PARTITION BY i.VBELN ORDER BY r.rate_date DESC) AS nth
  FROM silver.mixed i JOIN silver.ecb_rates r ON r.currency = i.WAERK AND r.rate_date <= i.ERDAT
), expected AS (
  SELECT VBELN, CASE WHEN cents < 0 THEN -1 ELSE 1 END * ((2 * abs(cents) * 1000000 + micros) // (2 * micros)) AS cents FROM rated WHERE nth = 1
  UNION ALL
  SELECT VBELN, CAST(NETWR * 100 AS HUGEINT) FROM silver.mixed WHERE WAERK = 'EUR'
)
SELECT count(*) FILTER (WHERE e.cents IS NULL OR CAST(l.net_amount_eur * 100 AS HUGEINT) <> e.cents) || ' of ' || count(*)
FROM silver.lines l LEFT JOIN expected e ON e.VBELN = l.order_id`,
		fmt.Sprintf("0 of %s", query(t, dir, "SELECT count(*) FROM silver.mixed WHERE WAERK = 'EUR' OR (WAERK <> 'XXX' AND ERDAT < DATE '2026-05-01')")))

	mustRun(t, dir, "run")
	expect("documents after a second run", "SELECT count(*) FROM bronze.orders", fmt.Sprint(documents))
	expect("items after a second run", "SELECT (SELECT count(*) FROM silver.lines) + (SELECT count(*) FROM silver.lines_quarantine)", fmt.Sprint(documents))
}

// ecbQuotes gives the list of structs that turns the ECB's wide file long, from its header.
func ecbQuotes(t *testing.T, shared string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared, "data/ecb/eurofxref-hist_2026-04-13.csv"))
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(text), "\n")
	var quotes []string
	for _, currency := range strings.Split(strings.TrimSpace(header), ",")[1:] {
		if currency != "" {
			quotes = append(quotes, fmt.Sprintf("{'currency': '%s', 'rate': `%s`}", currency, currency))
		}
	}
	return strings.Join(quotes, ", ")
}

// query runs a SELECT that gives one value.
func query(t testing.TB, dir, sql string) string {
	t.Helper()
	cmd, out := weirProcess(t, dir, nil, "query", sql, "--output", "csv")
	if err := cmd.Run(); err != nil {
		t.Fatalf("weir query %s: %v\n%s", sql, err, out)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1]
}
