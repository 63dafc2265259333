package scaffold

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// The ECB's euro reference rates of some days, as the ECB publishes them
// (source: ECB; free to reuse with the source named).
var (
	//go:embed sample/ecb_2026-04-09.csv
	ratesFirst string
	//go:embed sample/ecb_2026-04-13.csv
	ratesLater string
)

// addLanding adds the demo's landing files, and below later/ those that the
// demo drops afterwards: a late file, one with a new column, a broken one; what
// comes of SAP says addSAP.
func addLanding(out map[string][]byte) {
	const perDay = 40
	for day := range 3 {
		date := firstDay.AddDate(0, 0, day)
		for n := range perDay {
			o := order{number: day*perDay + n, placed: date.Add(time.Duration(6*3600+n*977) * time.Second)}
			out["landing/shop_order/"+o.fileName()] = o.document()
		}
	}
	addSAP(out)
	out["landing/ecb_rates/eurofxref_2026-04-09.csv"] = []byte(ratesFirst)

	// Sorts before every file that has been read, in its folder too.
	late := order{number: 900, placed: firstDay.Add(3 * time.Hour)}
	out["later/shop_order/"+late.fileName()] = late.document()
	gift := order{number: 901, placed: firstDay.AddDate(0, 0, 3).Add(7 * time.Hour), giftNote: "Happy birthday!"}
	out["later/shop_order/"+gift.fileName()] = gift.document()
	broken := order{number: 902, placed: firstDay.AddDate(0, 0, 3).Add(8 * time.Hour)}
	document := broken.document()
	out["later/shop_order/"+broken.fileName()] = document[:len(document)*2/3]
	out["later/ecb_rates/eurofxref_2026-04-13.csv"] = []byte(ratesLater)
}

// firstDay is the day of the first orders; the sample of rates covers it.
var firstDay = time.Date(2026, 4, 7, 0, 0, 0, 0, time.UTC)

// order is one order of the webshop.
type order struct {
	number   int
	placed   time.Time
	giftNote string
}

func (o order) fileName() string {
	return fmt.Sprintf("dt=%s/shop_order_%s_%04d.json", o.placed.Format(time.DateOnly), o.placed.Format("2006-01-02T15-04-05Z"), o.number)
}

// document gives the order as the shop writes it: one JSON object a file.
// Every 23rd total is text that is no number, every 29th order has an item without its number.
func (o order) document() []byte {
	n := o.number
	var items []string
	total := 0
	for i := range 1 + n%3 {
		quantity, cents := 1+(n+i)%4, 499+(n*137+i*911)%9000
		total += quantity * cents
		sku := fmt.Sprintf(`"sku":"ZO%05d",`, 10000+(n*31+i*7)%500)
		if n%29 == 3 && i == 0 {
			sku = ""
		}
		items = append(items, fmt.Sprintf(`{%s"qty":%d,"price":%s}`, sku, quantity, amount(cents)))
	}
	totalText := amount(total)
	if n%23 == 7 {
		totalText = `"on request"`
	}
	gift := ""
	if o.giftNote != "" {
		gift = fmt.Sprintf(`,"gift_note":%q`, o.giftNote)
	}
	return fmt.Appendf(nil, `{"order_id":"W-%06d","order_ts":"%s","customer_id":"C-%04d","currency":"%s","total_amount":%s,"items":[%s]%s}`+"\n",
		100000+n, o.placed.Format("2006-01-02T15:04:05Z"), n%37, pick(n/2, "EUR", "USD", "GBP", "CHF", "JPY"), totalText, strings.Join(items, ","), gift)
}

func amount(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

func pick(n int, from ...string) string { return from[n%len(from)] }
