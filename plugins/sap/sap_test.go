package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/sdk/go"
	"github.com/weir-data/weir/sdk/go/weirtest"
)

const (
	itemColumns = "VBELN string, POSNR int, NETWR %s, WAERK string, ERDAT %s, change_type string, change_seq bigint"
	rateColumns = "rate_date date, currency string, rate decimal(18,6)"
)

func items(amountType, dateType string, rows ...weirtest.Row) *weirtest.Input {
	for i, r := range rows {
		rows[i] = weirtest.Row{fmt.Sprintf("order %d", i), 10, r[0], r[1], r[2], "I", i}
	}
	return weirtest.Table(fmt.Sprintf(itemColumns, amountType, dateType), rows...)
}

var someRates = []weirtest.Row{
	{"2024-10-09", "USD", "1.0957"}, {"2024-10-10", "USD", "1.0932"}, {"2024-10-11", "USD", "1.0938"},
	{"2024-10-11", "JPY", "162.94"}, {"2024-10-11", "GBP", "0.83705"},
	{"2023-01-02", "HRK", "7.5365"}, {"2024-10-10", "SEK", nil}, {"2024-10-09", "SEK", "11.3555"},
}

func rates(rows ...weirtest.Row) *weirtest.Input { return weirtest.Table(rateColumns, rows...) }

// amountsAndCodes gives, for each input row, the amount in euro, "NULL" or the code of its error.
func amountsAndCodes(t *testing.T, r *weirtest.Result, n int) []string {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	out := make([]string, n)
	for _, e := range r.RowErrors {
		out[e.Row] = e.Code
	}
	for _, row := range r.Rows {
		at := row[3].(int)
		out[at] = "NULL"
		if v := row[4]; v != nil {
			out[at] = v.(string)
		}
	}
	return out
}

// covers A202
func TestItemsAreConvertedByTheRateOfTheirDay(t *testing.T) {
	m := weirtest.Load(t, nil)
	for _, c := range []struct{ why, amount, currency, date, want string }{
		{"rate of the day", "100.00", "USD", "2024-10-11", "91.42"},
		{"last rate before a Sunday", "100.00", "USD", "2024-10-13", "91.42"},
		{"rate of an earlier day", "100.00", "USD", "2024-10-10", "91.47"},
		{"units per euro: yen divide too", "100000.00", "JPY", "2024-10-11", "613.72"},
		{"below one unit per euro", "83.70", "GBP", "2024-10-11", "99.99"},
		{"negative amounts round away from zero", "-0.01", "GBP", "2024-10-11", "-0.01"},
		{"euro has rate 1 and no row", "12.34", "EUR", "2024-10-11", "12.34"},
		{"euro long before any rate", "12.34", "EUR", "1990-01-01", "12.34"},
		{"padded currency", "100.00", "USD  ", "2024-10-11", "91.42"},
		{"zero", "0.00", "USD", "2024-10-11", "0.00"},
		{"a day without a rate is passed over", "11.36", "SEK", "2024-10-10", "1.00"},
		{"unknown currency", "1.00", "XXX", "2024-10-11", "UNKNOWN_CURRENCY"},
		{"currency in another case", "1.00", "usd", "2024-10-11", "UNKNOWN_CURRENCY"},
		{"empty currency", "1.00", "", "2024-10-11", "UNKNOWN_CURRENCY"},
		{"no currency at all", "1.00", "\x00", "2024-10-11", "UNKNOWN_CURRENCY"},
		{"currency longer than any", "1.00", "US DOLLARS", "2024-10-11", "UNKNOWN_CURRENCY"},
		{"no earlier rate", "1.00", "JPY", "2024-10-10", "NO_RATE"},
		{"rate exactly as old as allowed", "1.09", "USD", "2024-10-21", "1.00"},
		{"rate too old", "1.00", "USD", "2024-10-22", "RATE_TOO_OLD"},
		{"series that ended", "1.00", "HRK", "2024-10-11", "RATE_TOO_OLD"},
	} {
		got := amountsAndCodes(t, m.Run("vbap_typed", items("decimal(15,2)", "date", weirtest.Row{c.amount, c.currency, c.date}), rates(someRates...)), 1)
		if got[0] != c.want {
			t.Errorf("%s: %s %s of %s gave %s, want %s", c.why, c.amount, c.currency, c.date, got[0], c.want)
		}
	}
}

func TestNothingButTheAmountEntersTheOutput(t *testing.T) {
	m := weirtest.Load(t, nil)
	r := m.Run("vbap_typed", items("decimal(15,2)", "date", weirtest.Row{"100.00", "USD", "2024-10-11"}), rates(someRates...))
	r.Equal(t, weirtest.Row{"order 0", 10, "I", 0, "91.42"})
	var names []string
	for _, f := range r.Fields {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "order_id line_number change_type change_seq net_amount_eur" {
		t.Errorf("the columns are %s", got)
	}
}

// covers A193 A198
func TestHeadersAreOnlyRenamed(t *testing.T) {
	m := weirtest.Load(t, nil)
	m.Run("vbak_typed", weirtest.Table("VBELN string, KUNNR string, ERDAT date, LOEKZ string, AUART string, change_type string, change_seq bigint",
		weirtest.Row{"1", "C1", "2024-10-11", nil, "TA", "I", 1},
		weirtest.Row{"1", "C1", "2024-10-11", "X", "TA", "U", 2}).Batches(1),
	).Equal(t, weirtest.Row{"1", "C1", "2024-10-11", nil, "I", 1}, weirtest.Row{"1", "C1", "2024-10-11", "X", "U", 2})
}

// covers A201
func TestAmountsComeInEveryType(t *testing.T) {
	m := weirtest.Load(t, nil)
	for _, c := range []struct {
		typ    string
		amount any
		want   string
	}{
		{"decimal(15,2)", "10.94", "10.00"}, {"decimal(38,10)", "10.9380000000", "10.00"}, {"decimal(10,0)", "11", "10.06"},
		{"decimal(38,10)", "-1844674407.3709551616", "-1686482361.83"}, {"decimal(38,8)", "-92233720368.54775808", "-84324118091.56"},
		{"decimal(38,0)", "99999999999999999999999999999999999999", "INVALID_AMOUNT"},
		{"double", 10.938, "10.00"}, {"double", 1.0938e10, "10000000000.00"}, {"double", -0.005469, "-0.01"}, {"double", 0.0054689, "0.00"},
		{"double", 1e300, "INVALID_AMOUNT"}, {"double", "NaN", "INVALID_AMOUNT"}, {"double", "-Inf", "INVALID_AMOUNT"}, {"double", 5e-324, "0.00"},
		{"bigint", 11, "10.06"}, {"int", 11, "10.06"},
		{"string", "10.938", "10.00"}, {"string", "  10.938 ", "10.00"}, {"string", "10.938-", "-10.00"}, {"string", "1.0938E1", "10.00"},
		{"string", "", "INVALID_AMOUNT"}, {"string", "-", "INVALID_AMOUNT"}, {"string", "-1-", "INVALID_AMOUNT"}, {"string", "1,234.50", "INVALID_AMOUNT"},
		{"string", "12,50", "INVALID_AMOUNT"}, {"string", "N/A", "INVALID_AMOUNT"},
		{"string", nil, "NULL"}, {"double", nil, "NULL"}, {"decimal(15,2)", nil, "NULL"},
	} {
		got := amountsAndCodes(t, m.Run("vbap_typed", items(c.typ, "date", weirtest.Row{c.amount, "USD", "2024-10-11"}), rates(someRates...)), 1)
		if got[0] != c.want {
			t.Errorf("%s %v gave %s, want %s", c.typ, c.amount, got[0], c.want)
		}
	}
}

// covers A197
func TestDatesComeInEveryType(t *testing.T) {
	m := weirtest.Load(t, nil)
	for _, c := range []struct {
		typ  string
		date any
		want string
	}{
		{"date", "2024-10-11", "91.42"}, {"string", "2024-10-11", "91.42"}, {"string", "20241011", "91.42"},
		{"timestamp", "2024-10-11T23:59:59Z", "91.42"}, {"timestamp_ntz", "2024-10-11T00:00:00Z", "91.42"},
		{"int", 20241011, "91.42"}, {"bigint", 20241011, "91.42"}, {"int", 0, "INVALID_DATE"}, {"int", 20241301, "INVALID_DATE"}, {"int", 20230229, "INVALID_DATE"},
		{"string", "00000000", "INVALID_DATE"}, {"string", "0000-00-00", "INVALID_DATE"}, {"string", "", "INVALID_DATE"},
		{"string", "20240230", "INVALID_DATE"}, {"string", "11.10.2024", "INVALID_DATE"}, {"string", nil, "INVALID_DATE"}, {"date", nil, "INVALID_DATE"},
	} {
		for _, currency := range []string{"USD", "EUR"} {
			want := c.want
			if currency == "EUR" && want == "91.42" {
				want = "100.00"
			}
			got := amountsAndCodes(t, m.Run("vbap_typed", items("decimal(15,2)", c.typ, weirtest.Row{"100.00", currency, c.date}), rates(someRates...)), 1)
			if got[0] != want {
				t.Errorf("%s %v in %s gave %s, want %s", c.typ, c.date, currency, got[0], want)
			}
		}
	}
}

func TestADeletionCarriesOnlyItsKey(t *testing.T) {
	m := weirtest.Load(t, nil)
	got := amountsAndCodes(t, m.Run("vbap_typed", items("decimal(15,2)", "date", weirtest.Row{nil, nil, nil}), rates(someRates...)), 1)
	if got[0] != "NULL" {
		t.Errorf("a row without amount, currency and date gave %s", got[0])
	}
}

func TestTheAgeOfARateIsConfigured(t *testing.T) {
	row := weirtest.Row{"1.09", "USD", "2024-10-13"}
	for age, want := range map[string]string{"2": "1.00", "1": "RATE_TOO_OLD", "0": "RATE_TOO_OLD", "400": "1.00"} {
		m := weirtest.Load(t, map[string]string{maxAgeKey: age})
		got := amountsAndCodes(t, m.Run("vbap_typed", items("decimal(15,2)", "date", row), rates(someRates...)), 1)
		row = weirtest.Row{"1.09", "USD", "2024-10-13"}
		if got[0] != want {
			t.Errorf("age %s gave %s, want %s", age, got[0], want)
		}
	}
	for _, age := range []string{"", "ten", "1.5", "-1", "99999999"} {
		m := weirtest.Load(t, map[string]string{maxAgeKey: age})
		r := m.Run("vbap_typed", items("decimal(15,2)", "date", row), rates(someRates...))
		if r.Err == nil || !strings.HasPrefix(r.Err.Error(), "[INVALID_CONF]") {
			t.Errorf("age %q gave %v", age, r.Err)
		}
		row = weirtest.Row{"1.09", "USD", "2024-10-13"}
	}
}

func TestBadRatesAreTheRowsBusiness(t *testing.T) {
	m := weirtest.Load(t, nil)
	table := func(rows ...weirtest.Row) *weirtest.Input { return rates(rows...) }
	for _, c := range []struct {
		why  string
		in   *weirtest.Input
		want string
	}{
		{"one rate twice", table(weirtest.Row{"2024-10-11", "USD", "2"}, weirtest.Row{"2024-10-11", "USD", "2.00"}), "0.50"},
		{"two rates for a day", table(weirtest.Row{"2024-10-11", "USD", "2"}, weirtest.Row{"2024-10-11", "USD", "4"}), "AMBIGUOUS_RATE"},
		{"two rates and a third", table(weirtest.Row{"2024-10-11", "USD", "4"}, weirtest.Row{"2024-10-11", "USD", "2"}, weirtest.Row{"2024-10-11", "USD", "4"}), "AMBIGUOUS_RATE"},
		{"two rates for another day", table(weirtest.Row{"2024-10-11", "USD", "2"}, weirtest.Row{"2024-10-10", "USD", "4"}, weirtest.Row{"2024-10-10", "USD", "5"}), "0.50"},
		{"rate of zero", table(weirtest.Row{"2024-10-11", "USD", "0"}), "INVALID_RATE"},
		{"negative rate", table(weirtest.Row{"2024-10-11", "USD", "-1"}), "INVALID_RATE"},
		{"no rates", table(), "UNKNOWN_CURRENCY"},
		{"only N/A", table(weirtest.Row{"2024-10-11", "USD", nil}), "UNKNOWN_CURRENCY"},
		{"days far apart", table(weirtest.Row{"0001-01-01", "USD", "9"}, weirtest.Row{"2024-10-10", "USD", "2"}, weirtest.Row{"9999-12-31", "USD", "8"}), "0.50"},
	} {
		got := amountsAndCodes(t, m.Run("vbap_typed", items("decimal(15,2)", "date", weirtest.Row{"1.00", "USD", "2024-10-11"}), c.in), 1)
		if got[0] != c.want {
			t.Errorf("%s gave %s, want %s", c.why, got[0], c.want)
		}
	}
}

// reference converts by the definition, with math/big.
func reference(rates map[string]map[int]*big.Rat, amount *big.Rat, currency string, day, maxAge int) string {
	if currency == "EUR" {
		return roundHalfAway(amount)
	}
	series := rates[currency]
	if series == nil {
		return "UNKNOWN_CURRENCY"
	}
	best, at := (*big.Rat)(nil), 0
	for d, r := range series {
		if d <= day && (best == nil || d > at) {
			best, at = r, d
		}
	}
	switch {
	case best == nil:
		return "NO_RATE"
	case day-at > maxAge:
		return "RATE_TOO_OLD"
	}
	return roundHalfAway(new(big.Rat).Quo(amount, best))
}

func roundHalfAway(x *big.Rat) string {
	num := new(big.Int).Mul(new(big.Int).Abs(x.Num()), big.NewInt(200))
	num.Add(num, x.Denom()).Quo(num, new(big.Int).Mul(x.Denom(), big.NewInt(2)))
	if len(num.String()) > 18 {
		return "INVALID_AMOUNT"
	}
	if x.Sign() < 0 {
		num.Neg(num)
	}
	return new(big.Rat).SetFrac(num, big.NewInt(100)).FloatString(2)
}

func TestConversionEqualsBigAndIgnoresTheOrderOfRates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	currencies := []string{"USD", "JPY", "CHF", "IDR", "EUR", "XXX"}
	m := weirtest.Load(t, nil)
	for round := range 20 {
		table, rateRows := map[string]map[int]*big.Rat{}, []weirtest.Row{}
		for _, c := range currencies[:4] {
			table[c] = map[int]*big.Rat{}
			for day := 20000; day < 20200; day += 1 + r.IntN(18) {
				text := weir.DecimalFromInt64(1 + r.Int64N([]int64{10, 3e6, 3e10, 999999999999999999}[r.IntN(4)])).Text(6)
				table[c][day], _ = new(big.Rat).SetString(text)
				rateRows = append(rateRows, weirtest.Row{weir.Date(day).String(), c, text})
			}
		}
		scale := r.IntN(8)
		var rows []weirtest.Row
		var want []string
		for range 500 {
			text := weir.DecimalFromInt64(int64(r.Uint64()) >> r.IntN(60)).Text(scale)
			amount, _ := new(big.Rat).SetString(text)
			currency, day := currencies[r.IntN(len(currencies))], 19990+r.IntN(230)
			rows = append(rows, weirtest.Row{text, currency, weir.Date(day).String()})
			want = append(want, reference(table, amount, currency, day, defaultMaxAge))
		}
		in := items(fmt.Sprintf("decimal(38,%d)", scale), "date", rows...).Batches(1 + r.IntN(600))
		r.Shuffle(len(rateRows), func(i, j int) { rateRows[i], rateRows[j] = rateRows[j], rateRows[i] })
		got := amountsAndCodes(t, m.Run("vbap_typed", in, rates(rateRows...).Batches(1+r.IntN(100))), len(rows))
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("round %d: %v gave %s, want %s", round, rows[i], got[i], want[i])
			}
		}
		slices.Reverse(rateRows)
		if again := amountsAndCodes(t, m.Run("vbap_typed", in, rates(rateRows...)), len(rows)); !slices.Equal(got, again) {
			t.Fatalf("round %d: another order of the rates gave other amounts", round)
		}
	}
}

func TestNamesComeFromTheConfiguration(t *testing.T) {
	m := weirtest.Load(t, map[string]string{"sap.vbap_source": "raw.items", "sap.rates": "raw.rates", "sap.vbak_source": ""})
	text := string(m.Manifest())
	for _, want := range []string{`"dataset":"raw.items"`, `"dataset":"raw.rates"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest lacks %s: %s", want, text)
		}
	}
	if strings.Contains(text, "vbak_typed") {
		t.Error("an empty sap.vbak_source does not leave vbak_typed out")
	}
}
