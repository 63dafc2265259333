package main

import "github.com/weir-data/weir/sdk/go"

// amounts reads NETWR in whichever type the feed delivers it: SAP amounts arrive as decimals, as
// floats and as text. A float means the shortest decimal that stands for it.
type amounts struct {
	weir.Numerics
	texts  weir.Strings
	isText bool
	values weir.Decimals // where plain
	scale  int
	plain  bool
}

func amountsOf(c weir.Column) amounts {
	a := amounts{Numerics: c.Numeric()}
	if k := c.Type().Kind; k == weir.KindString || k == weir.KindLargeString {
		a.texts, a.isText = c.String(), true
	} else if k == weir.KindDecimal128 {
		a.values, a.scale, a.plain = c.Decimal128(), c.Type().Scale, true
	}
	return a
}

func (a *amounts) at(i int) (d weir.Decimal128, scale int, ok bool) {
	if a.isText {
		return scanAmount(a.texts.At(i))
	}
	return a.At(i)
}

// scanAmount reads an amount as SAP writes it: padded with spaces, a minus behind. A decimal comma or
// a group separator is refused: which of the two a "1,234" is cannot be told.
func scanAmount(text string) (d weir.Decimal128, scale int, ok bool) {
	text = trim(text)
	negative := len(text) > 1 && text[len(text)-1] == '-'
	if negative {
		text = text[:len(text)-1]
		if text[0] == '-' || text[0] == '+' {
			return d, 0, false
		}
	}
	d, scale, ok = weir.ScanDecimal(text)
	if negative && ok {
		d, ok = d.Neg()
	}
	return d, scale, ok
}

func trim(s string) string {
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// days reads ERDAT: a date, a timestamp (its day in UTC), SAP's text, or that text as inference takes it
// for a number, 20241011. '00000000' and '0000-00-00' stand for no date at all.
type days struct {
	kind   weir.Kind
	column weir.Column
	plain  bool // a date
	dates  weir.Numbers[weir.Date]
	stamps weir.Timestamps
	texts  weir.Strings
	ints   weir.Integers
}

const microsPerDay = 86_400_000_000

func daysOf(c weir.Column) days {
	d := days{kind: c.Type().Kind, column: c}
	switch d.kind {
	case weir.KindString, weir.KindLargeString:
		d.kind, d.texts = weir.KindString, c.String()
	case weir.KindTimestamp:
		d.stamps = c.Timestamp()
	case weir.KindInt32, weir.KindInt64:
		d.kind, d.ints = weir.KindInt64, c.Integer()
	default:
		d.dates, d.plain = c.Date(), d.kind == weir.KindDate32
	}
	return d
}

func (d *days) at(i int) (weir.Date, bool) {
	if d.column.Null(i) {
		return 0, false
	}
	switch d.kind {
	case weir.KindString:
		return weir.ParseDate(trim(d.texts.At(i)))
	case weir.KindTimestamp:
		us := d.stamps.Micros(i)
		day := us / microsPerDay
		if us%microsPerDay < 0 {
			day--
		}
		return weir.Date(day), true
	case weir.KindInt64:
		return dateOfNumber(d.ints.At(i))
	}
	return d.dates.At(i), true
}

// dateOfNumber reads 20241011.
func dateOfNumber(v int64) (weir.Date, bool) {
	if v < 10101 || v > 99991231 {
		return 0, false
	}
	year, month, day := int(v/10000), int(v/100%100), int(v%100)
	date := weir.DateOf(year, month, day)
	y, m, d := date.Civil()
	return date, y == year && m == month && d == day
}
