package pipeline

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sharedData gives the folder of real data, or skips: real data is no part of
// the repository.
func sharedData(t *testing.T) string {
	t.Helper()
	root := os.Getenv("WEIR_SHARED")
	if root == "" {
		root = filepath.Join(repoRoot, "..", "shared")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "data", "orders_json")); err != nil {
		t.Skipf("SKIPPED for want of real data: %v (set WEIR_SHARED)", err)
	}
	return filepath.Join(root, "data")
}

const (
	ordersFile = "orders_json/ecommerce_orders.ndjson.gz"
	ratesFile  = "ecb/eurofxref-hist_2026-04-13.csv"
)

// realSQL brings the orders into the columns of SAP's VBAP and the rates from
// wide to long. The orders are of the winter of 2016; a fifth of them moves to
// 2023, when the series of HRK and RUB had ended, and some to 1996, before the
// first rate.
const realSQL = `
CREATE OR REFRESH STREAMING TABLE bronze.shop_order
COMMENT 'One row an order document'
AS SELECT *, current_timestamp() AS _tech_loaded_at, _metadata.file_path AS _tech_source_file, '${dwh.batch_id}' AS _tech_batch_id
FROM STREAM read_files('landing/orders', format => 'json',
  schemaHints => 'order_id BIGINT, order_date TIMESTAMP, taxful_total_price DECIMAL(18,2), products ARRAY<STRUCT<sku STRING, price DECIMAL(18,2), quantity BIGINT>>');

CREATE OR REFRESH STREAMING TABLE bronze.ecb AS SELECT * FROM STREAM read_files('landing/ecb', format => 'csv', inferColumnTypes => 'false');

CREATE OR REFRESH STREAMING TABLE silver.ecb_rates (
  CONSTRAINT rate EXPECT (rate > 0) ON VIOLATION FAIL UPDATE
) AS SELECT CAST(Date AS DATE) AS rate_date, currency, CAST(rate AS DECIMAL(18,6)) AS rate
FROM (UNPIVOT (SELECT * EXCLUDE (_rescued_data) FROM STREAM(bronze.ecb)) ON COLUMNS(* EXCLUDE (Date)) INTO NAME currency VALUE rate)
WHERE rate <> 'N/A';

CREATE OR REFRESH STREAMING TABLE bronze.sap_vbap AS
SELECT order_id AS VBELN, position AS POSNR, products[position - 1].price AS NETWR,
  CAST(order_date AS DATE) + CASE WHEN order_id % 5 = 1 THEN 2300 WHEN order_id % 97 = 0 THEN -7300 ELSE 0 END AS ERDAT,
  'I' AS change_type, order_id AS change_seq
FROM (SELECT order_id, order_date, products, unnest(range(1, len(products) + 1)) AS position FROM STREAM(bronze.shop_order));

CREATE OR REFRESH STREAMING TABLE silver.order_item (
  CONSTRAINT amount EXPECT (net_amount_eur IS NOT NULL) ON VIOLATION QUARANTINE
) TBLPROPERTIES ('weir.onRowError' = 'quarantine')
AS SELECT * FROM STREAM(vbap_typed);
`

// expectedItems computes what each item must become, from the raw columns and
// in integers only: DuckDB's division of decimals gives DOUBLE.
const expectedItems = `(
  WITH item AS (
    SELECT *, ['EUR','USD','JPY','GBP','CHF','SEK','XXX','IDR','HRK','RUB','TRY','KRW'][VBELN % 12] AS cur FROM bronze.sap_vbap
  ), rated AS (
    SELECT i.*, r.rate, r.rate_date FROM item i ASOF LEFT JOIN silver.ecb_rates r ON i.cur = r.currency AND i.ERDAT >= r.rate_date
  ), scaled AS (
    SELECT *, CAST(NETWR * 100 AS HUGEINT) AS cents, CAST(coalesce(rate, 1) * 1000000 AS HUGEINT) AS micros FROM rated
  )
  SELECT VBELN, POSNR, cur,
    CASE WHEN cur = 'EUR' THEN NULL
      WHEN cur NOT IN (SELECT currency FROM silver.ecb_rates) THEN 'UNKNOWN_CURRENCY'
      WHEN rate IS NULL THEN 'NO_RATE'
      WHEN datediff(ERDAT, rate_date) > 10 THEN 'RATE_TOO_OLD' END AS code,
    CASE WHEN cents < 0 THEN -1 ELSE 1 END * ((2 * abs(cents) * 1000000 + micros) // (2 * micros)) AS eur_cents
  FROM scaled)`

// The real path on real input: every document of a real shop and every rate of
// the European Central Bank go through two plugins and SQL into silver, and
// each can be accounted for.
// covers A10 A52 A193 A202
func TestRealOrdersAndRatesAreAccountedForRowByRow(t *testing.T) {
	data := sharedData(t)
	orders := readOrders(t, filepath.Join(data, ordersFile))
	rates := countRates(t, filepath.Join(data, ratesFile))
	if len(orders) != 4675 {
		t.Fatalf("%d documents", len(orders))
	}
	p := newProject(t,
		`configuration: {dwh.batch_id: manual, sap.vbak_source: "", sap.vbap_source: sap_vbap_mixed}`,
		"plugins:",
		"  - {path: "+buildModule(t, "plugins/sap")+", grants: {conf: [sap.*]}}",
		"  - {path: "+buildModule(t, "plugins/fixtures/currencymix")+"}")
	p.write("sql/real.sql", realSQL)
	for _, c := range [][2]string{{ordersFile, "landing/orders"}, {ratesFile, "landing/ecb"}} {
		text, err := os.ReadFile(filepath.Join(data, c[0]))
		if err != nil {
			t.Fatal(err)
		}
		p.write(filepath.Join(c[1], filepath.Base(c[0])), string(text))
	}

	r := p.completed(RunOptions{})
	bronze, items := r.flow(t, "shop_order"), r.flow(t, "order_item")
	if bronze.RowsRead != 4675 || bronze.RowsWritten != 4675 || bronze.Malformed != 0 {
		t.Errorf("bronze %+v", bronze.Metrics)
	}
	if got := r.flow(t, "ecb_rates").RowsWritten; got != int64(rates) {
		t.Errorf("%d rates, the file has %d", got, rates)
	}
	var want []string
	lines := 0
	for _, o := range orders {
		want = append(want, fmt.Sprintf(`{"order_id":%d,"taxful_total_price":%s,"n":%d}`, o.id, o.total, o.items))
		lines += o.items
	}
	if got := p.rows("SELECT order_id, taxful_total_price, len(products) AS n FROM shop_order ORDER BY order_id"); !slices.Equal(got, want) {
		t.Error("bronze differs from the documents")
	}
	if items.RowsRead != int64(lines) || items.RowsWritten+items.Quarantined != int64(lines) || items.RowErrors != items.Quarantined {
		t.Errorf("%d items: %+v", lines, items.Metrics)
	}

	// Each item is in exactly one of the two tables, with the amount or the code it must have.
	p.wantRows(`SELECT count(*) AS n, count(*) FILTER (WHERE e.code IS NULL AND CAST(o.net_amount_eur * 100 AS HUGEINT) = e.eur_cents) = count(*) AS all_equal
		FROM silver.order_item o LEFT JOIN `+expectedItems+` e ON e.VBELN = o.order_id AND e.POSNR = o.line_number`,
		fmt.Sprintf(`{"n":%d,"all_equal":true}`, items.RowsWritten))
	p.wantRows(`SELECT count(*) AS n, count(*) FILTER (WHERE e.code = q._code) = count(*) AS all_equal
		FROM silver.order_item_quarantine q LEFT JOIN `+expectedItems+` e
		ON e.VBELN = CAST(q._row->>'$.VBELN' AS BIGINT) AND e.POSNR = CAST(q._row->>'$.POSNR' AS BIGINT)`,
		fmt.Sprintf(`{"n":%d,"all_equal":true}`, items.Quarantined))
	p.wantRows(`SELECT count(*) FILTER (WHERE code IS NULL) AS fine, count(*) FILTER (WHERE code IS NOT NULL) AS refused FROM `+expectedItems,
		fmt.Sprintf(`{"fine":%d,"refused":%d}`, items.RowsWritten, items.Quarantined))
	p.wantRows(`SELECT count(DISTINCT id) AS n FROM (SELECT order_id AS id FROM silver.order_item
		UNION ALL SELECT CAST(_row->>'$.VBELN' AS BIGINT) FROM silver.order_item_quarantine)`, `{"n":4675}`)
	codes := p.rows("SELECT DISTINCT _code FROM silver.order_item_quarantine ORDER BY 1")
	if got := strings.Join(codes, " "); got != `{"_code":"NO_RATE"} {"_code":"RATE_TOO_OLD"} {"_code":"UNKNOWN_CURRENCY"}` {
		t.Errorf("codes %s", got)
	}
	p.wantRows(`SELECT count(DISTINCT cur) AS currencies FROM `+expectedItems+` WHERE code IS NULL`, `{"currencies":11}`)

	again := p.completed(RunOptions{})
	for _, f := range again.Flows {
		if f.Batches != 0 || f.RowsWritten != 0 {
			t.Errorf("the second run does something: %s %+v", f.Dataset, f.Metrics)
		}
	}
}

type realOrder struct {
	id    int64
	total string // as decimal(18,2)
	items int
}

// readOrders reads the documents without any of our code, ascending by number.
func readOrders(t *testing.T, path string) []realOrder {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []realOrder
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var doc struct {
			ID       int64       `json:"order_id"`
			Total    json.Number `json:"taxful_total_price"`
			Products []any       `json:"products"`
		}
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		whole, fraction, _ := strings.Cut(doc.Total.String(), ".")
		if len(fraction) > 2 {
			t.Fatalf("order %d costs %s", doc.ID, doc.Total)
		}
		out = append(out, realOrder{doc.ID, whole + "." + (fraction + "00")[:2], len(doc.Products)})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b realOrder) int { return int(a.id - b.id) })
	return out
}

// countRates counts the cells of the file that hold a rate.
func countRates(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		row, err := r.Read()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range row[1:] {
			if cell != "" && cell != "N/A" {
				n++
			}
		}
	}
}
