package scaffold

import (
	"fmt"
	"strings"
	"time"
)

// addSAP adds what comes of SAP: change records of orders and their items, and
// a full extract of the customers a day. Below later/ are the fourth day's: changes
// that come again, come late, or in the wrong order, and an extract that was cut
// off; below fixed/ is that extract as it should have been.
func addSAP(out map[string][]byte) {
	for day := range 3 {
		date := firstDay.AddDate(0, 0, day)
		out[sapFile("landing", "vbak", date)] = csvFile(headerColumns, headers(day*ordersPerDay, ordersPerDay, date))
		out[sapFile("landing", "vbap", date)] = csvFile(itemColumns, items(day*itemsPerDay, itemsPerDay, date))
	}
	fourth := firstDay.AddDate(0, 0, 3)
	out[sapFile("later", "vbak", fourth)] = csvFile(headerColumns, laterHeaders(fourth))
	out[sapFile("later", "vbap", fourth)] = csvFile(itemColumns, laterItems(fourth))

	for day := -1; day < 3; day++ { // from the day before the first order
		date := firstDay.AddDate(0, 0, day)
		out[sapFile("landing", "kna1", date)] = csvFile(customerColumns, extract(day))
	}
	whole := extract(3)
	out[sapFile("later", "kna1", fourth)] = csvFile(customerColumns, whole[:len(whole)*6/10])
	out[strings.TrimSuffix(sapFile("fixed", "kna1", fourth), ".csv")+"_2.csv"] = csvFile(customerColumns, whole)
}

const (
	ordersPerDay = 20
	itemsPerDay  = 3 * ordersPerDay

	headerColumns   = "VBELN,KUNNR,ERDAT,LOEKZ,change_type,change_seq"
	itemColumns     = "VBELN,POSNR,NETWR,WAERK,ERDAT,change_type,change_seq"
	customerColumns = "KUNNR,NAME1,STRAS,PSTLZ,ORT01,LAND1,KUKLA"

	firstOrder, firstCustomer = 4700000, 300
	customers                 = 400
	buyers                    = 37 // customers that order
)

func sapFile(below, table string, date time.Time) string {
	return fmt.Sprintf("%s/sap_%s/dt=%s/sap_%s_%s.csv", below, table, date.Format(time.DateOnly), table, date.Format("20060102"))
}

func csvFile(columns string, lines []string) []byte {
	return []byte(columns + "\n" + strings.Join(lines, "\n") + "\n")
}

// header gives one change record of an order (VBAK).
func header(order, customer int, date time.Time, deleted bool, kind string, seq int) string {
	flag := ""
	if deleted {
		flag = "X"
	}
	return fmt.Sprintf("%010d,%010d,%s,%s,%s,%d", firstOrder+order, firstCustomer+customer, date.Format(time.DateOnly), flag, kind, seq)
}

// headers gives the change records of new orders. Some carry SAP's deletion flag,
// some change twice on one day.
func headers(from, n int, date time.Time) []string {
	var out []string
	for i := from; i < from+n; i++ {
		out = append(out, header(i, i%buyers, date, i%19 == 11, "I", 10*(i+1)))
		if i%7 == 3 {
			out = append(out, header(i, (i+1)%buyers, date, false, "U", 10*(i+1)+5))
		}
	}
	return out
}

// laterHeaders gives the fourth day's: records that have come before, a change that
// is older than the one applied, a delete, a delete before its insert, new orders.
func laterHeaders(date time.Time) []string {
	third := date.AddDate(0, 0, -1)
	before := headers(2*ordersPerDay, ordersPerDay, third)
	return append(before[len(before)-5:],
		header(3, 99, firstDay, false, "U", 42),
		header(6, 6, firstDay, false, "D", 2001),
		header(90, 1, date, false, "D", 2003),
		header(90, 1, date, false, "I", 2002),
		header(60, 5, date, false, "I", 2010),
		header(61, 14, date, false, "I", 2011),
		header(62, 33, date, false, "I", 2012))
}

// item gives one change record of an order's item (VBAP).
func item(i, cents int, currency string, date time.Time, kind string, seq int) string {
	return fmt.Sprintf("%010d,%06d,%s,%s,%s,%s,%d", firstOrder+i/3, 10*(1+i%3), amount(cents), currency, date.Format(time.DateOnly), kind, seq)
}

// items gives the change records of new items. Some cannot be converted: a currency
// that does not exist, a document from before the euro.
func items(from, n int, date time.Time) []string {
	var out []string
	for i := from; i < from+n; i++ {
		currency, documentDate := pick(i, "EUR", "USD", "GBP", "JPY", "CHF", "PLN", "HUF"), date
		switch {
		case i%41 == 5:
			currency = "XTS"
		case i%53 == 9:
			documentDate = time.Date(1998, 12, 31, 0, 0, 0, 0, time.UTC)
		}
		out = append(out, item(i, 1999+(i*7919)%250000, currency, documentDate, pick(i, "I", "I", "I", "U"), 10*(i+1)))
	}
	return out
}

// laterItems gives the fourth day's: records that have come before, an amount that
// is corrected, an item that is gone, new items, the last of them of orders whose
// header has not come.
func laterItems(date time.Time) []string {
	before := items(2*itemsPerDay, itemsPerDay, date.AddDate(0, 0, -1))
	out := append(before[len(before)-5:],
		item(0, 1000, "EUR", firstDay, "U", 3001),
		item(1, 999900, "EUR", firstDay, "D", 3002))
	return append(out, items(3*itemsPerDay, ordersPerDay, date)...)
}

// moves are the changes of a customer's segment, by customer: the day, and where to.
var moves = map[int]struct {
	day     int
	segment string
}{5: {1, "B"}, 14: {2, "A"}, 20: {2, "A"}}

// gone is the customer that the extracts no longer have, from the third day on.
const gone = 33

// extract gives the customers (KNA1) as they are on a day. A quarter of them have
// their address corrected each day; three change their segment, one is deleted.
func extract(day int) []string {
	var out []string
	for c := range customers {
		if c == gone && day >= 2 {
			continue
		}
		corrections := 0
		for d := 0; d <= day; d++ {
			if (c*7+d*13)%4 == 0 {
				corrections++
			}
		}
		segment := pick(c, "A", "B", "C")
		if m, ok := moves[c]; ok && day >= m.day {
			segment = m.segment
		}
		out = append(out, fmt.Sprintf("%010d,%s %d,Quay %d%s,%05d,%s,DE,%s", firstCustomer+c, pick(c, "Anchor", "Buoy", "Capstan", "Davit"), c,
			1+c%90, strings.Repeat("a", corrections), 20457+c%40, pick(c, "Hamburg", "Bremen", "Rostock", "Kiel", "Emden"), segment))
	}
	return out
}
