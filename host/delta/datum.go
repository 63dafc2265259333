package delta

import (
	"cmp"
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// datum is one value of a comparison. Values of one kind compare; kinds differ
// where SQL would cast first, and what a cast does depends on the engine.
type datum struct {
	kind datumKind
	i    int64    // boolKind, intKind, dateKind, timeKind
	f    float64  // floatKind
	s    string   // textKind, bytesKind
	r    *big.Rat // decimalKind
}

type datumKind int

const (
	noKind datumKind = iota
	boolKind
	intKind
	floatKind
	decimalKind
	textKind
	bytesKind
	dateKind
	timeKind
)

func intDatum(v int64) datum     { return datum{kind: intKind, i: v} }
func floatDatum(v float64) datum { return datum{kind: floatKind, f: v} }
func textDatum(v string) datum   { return datum{kind: textKind, s: v} }
func bytesDatum(v string) datum  { return datum{kind: bytesKind, s: v} }

func boolDatum(v bool) datum {
	if v {
		return datum{kind: boolKind, i: 1}
	}
	return datum{kind: boolKind}
}

func decimalDatum(v decimal128.Num, scale int32) datum {
	if scale < 0 || scale > 76 {
		return datum{}
	}
	den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return datum{kind: decimalKind, r: new(big.Rat).SetFrac(v.BigInt(), den)}
}

// as gives the equal value of a kind, if there is one whatever the engine.
func (d datum) as(k datumKind) (datum, bool) {
	switch {
	case d.kind == k:
		return d, k != noKind
	case d.kind == intKind && k == decimalKind:
		return datum{kind: decimalKind, r: new(big.Rat).SetInt64(d.i)}, true
	case d.kind == intKind && k == floatKind && d.i >= -1<<24 && d.i <= 1<<24:
		return floatDatum(float64(d.i)), true // exact for both widths
	}
	return datum{}, false
}

// compare orders two values of one kind.
func (d datum) compare(o datum) int {
	switch d.kind {
	case floatKind:
		switch nan, other := math.IsNaN(d.f), math.IsNaN(o.f); {
		case nan && other:
			return 0
		case nan:
			return 1
		case other:
			return -1
		}
		switch {
		case d.f < o.f:
			return -1
		case d.f > o.f:
			return 1
		}
		return 0
	case decimalKind:
		return d.r.Cmp(o.r)
	case textKind, bytesKind:
		return strings.Compare(d.s, o.s)
	}
	return cmp.Compare(d.i, o.i)
}
