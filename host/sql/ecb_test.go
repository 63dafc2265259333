package sql

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// sharedData gives the folder of real data, or skips.
func sharedData(t *testing.T, parts ...string) string {
	t.Helper()
	root := os.Getenv("WEIR_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	path := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data is not there: %v", err)
	}
	return path
}

// The whole history of ECB rates, wide to long, as a pipeline says it.
// covers A10
func TestECBWideToLong(t *testing.T) {
	f, err := os.Open(sharedData(t, "data", "ecb", "eurofxref-hist_2026-04-13.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	header := records[0]
	header[len(header)-1] = "_c42"
	var fields []arrow.Field
	for _, h := range header {
		fields = append(fields, arrow.Field{Name: h, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	var want []string
	for i, rec := range records[1:] {
		for c, v := range rec {
			b.Field(c).(*array.StringBuilder).Append(v)
			if c > 0 && v != "N/A" && v != "" {
				want = append(want, fmt.Sprintf("%q %q %s %d", rec[0], header[c], sixDigits(v), i))
			}
		}
	}
	in := stream(t, b.NewRecordBatch(), "/landing/eurofxref-hist.csv")

	st := parseOne(t, `CREATE OR REFRESH STREAMING TABLE ecb_rates (
		CONSTRAINT positive EXPECT (rate > 0) ON VIOLATION FAIL UPDATE
	) AS SELECT CAST(Date AS DATE) AS rate_date, currency, CAST(rate AS DECIMAL(18,6)) AS rate
	FROM (UNPIVOT (SELECT * EXCLUDE (_c42) FROM STREAM(bronze.ecb_hist)) ON COLUMNS(* EXCLUDE (Date)) INTO NAME currency VALUE rate)
	WHERE rate <> 'N/A'`, nil)
	e := openEngine(t)
	got, err := run(t, e, st.Select(), map[string]arrow.RecordBatch{"bronze.ecb_hist": in})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d rates, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i]+" 0" {
			t.Fatalf("rate %d: got %s, want %s", i, got[i], want[i])
		}
	}
	t.Logf("%d rates", len(got))
}

// sixDigits writes a decimal text with six digits after the point.
func sixDigits(s string) string {
	whole, frac, _ := strings.Cut(s, ".")
	return whole + "." + frac + strings.Repeat("0", 6-len(frac))
}
