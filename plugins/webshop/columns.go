package main

import "github.com/weir-data/weir/sdk/go"

// texts reads an identifier: shops write it as text or as a number, and inference follows them.
type texts struct {
	column  weir.Column
	strings weir.Strings
	numbers weir.Integers
	number  bool
	buf     []byte
}

func textsOf(c weir.Column) texts {
	switch c.Type().Kind {
	case weir.KindInt32, weir.KindInt64:
		return texts{column: c, numbers: c.Integer(), number: true}
	}
	return texts{column: c, strings: c.String()}
}

// at gives the text of row i until the next call; false when it is null or empty.
func (v *texts) at(i int) (string, bool) {
	switch {
	case v.column.Null(i):
		return "", false
	case v.number:
		v.buf = weir.DecimalFromInt64(v.numbers.At(i)).Append(v.buf[:0], 0)
		return string(v.buf), true
	}
	s := v.strings.At(i)
	return s, s != ""
}

func appendText(to *weir.StringBuilder, from *texts, i int) {
	if s, ok := from.at(i); ok {
		to.Append(s)
	} else {
		to.AppendNull()
	}
}

// instants reads a point in time: a timestamp, or ISO 8601 text.
type instants struct {
	column weir.Column
	stamps weir.Timestamps
	texts  weir.Strings
	text   bool
}

func instantsOf(c weir.Column) instants {
	if k := c.Type().Kind; k == weir.KindString || k == weir.KindLargeString {
		return instants{column: c, texts: c.String(), text: true}
	}
	return instants{column: c, stamps: c.Timestamp()}
}

func (v *instants) null(i int) bool { return v.column.Null(i) }

// at gives microseconds since 1970 in UTC; text without a zone is taken as UTC.
func (v *instants) at(i int) (int64, bool) {
	if v.text {
		us, _, ok := weir.ParseTimestamp(v.texts.At(i))
		return us, ok
	}
	return v.stamps.Micros(i), true
}
