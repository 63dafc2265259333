package weir

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
)

var roundings = map[string]Rounding{
	"HalfAwayFromZero": HalfAwayFromZero, "HalfEven": HalfEven, "Down": Down, "Up": Up, "Floor": Floor, "Ceil": Ceil,
}

func bigOf(d Decimal128) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(d.Hi), 64)
	return v.Add(v, new(big.Int).SetUint64(d.Lo))
}

var (
	maxDecimal = Decimal128{math.MaxUint64, math.MaxInt64}
	minDecimal = Decimal128{0, math.MinInt64}
)

// randomDecimal likes the edges of words, powers of ten and their neighbours.
func randomDecimal(r *rand.Rand) Decimal128 {
	var d Decimal128
	switch r.IntN(6) {
	case 0:
		d = DecimalFromInt64(r.Int64N(2000) - 1000)
	case 1:
		d = DecimalFromInt64(int64(r.Uint64()))
	case 2:
		d = Decimal128{r.Uint64(), int64(r.Uint64())}
	case 3:
		m := pow10[r.IntN(len(pow10))]
		d = Decimal128{m[0], int64(m[1])}
	case 4:
		d = [...]Decimal128{maxDecimal, minDecimal, {math.MaxUint64, 0}, {0, 1}, {1 << 63, 0}, {}, DecimalFromInt64(math.MinInt64)}[r.IntN(7)]
	case 5:
		d = Decimal128{r.Uint64() >> r.IntN(64), int64(r.Uint64() >> 1 >> r.IntN(63))}
	}
	if r.IntN(3) == 0 {
		d, _ = d.Add(DecimalFromInt64(int64(r.IntN(5) - 2)))
	}
	if r.IntN(2) == 0 {
		if n, ok := d.Neg(); ok {
			d = n
		}
	}
	return d
}

func fits128(v *big.Int) bool {
	return v.Cmp(bigOf(maxDecimal)) <= 0 && v.Cmp(bigOf(minDecimal)) >= 0
}

// roundRat is the definition that the roundings are held to.
func roundRat(x *big.Rat, r Rounding) *big.Int {
	floor := new(big.Int).Div(x.Num(), x.Denom()) // Euclidean: floor, since the denominator is positive
	if x.IsInt() {
		return floor
	}
	ceil := new(big.Int).Add(floor, big.NewInt(1))
	down, up := floor, ceil
	if x.Sign() < 0 {
		down, up = ceil, floor
	}
	frac := new(big.Rat).Sub(new(big.Rat).Abs(x), new(big.Rat).SetInt(new(big.Int).Abs(down)))
	half := frac.Cmp(big.NewRat(1, 2))
	switch r {
	case HalfAwayFromZero:
		if half >= 0 {
			return up
		}
		return down
	case HalfEven:
		if half > 0 || half == 0 && down.Bit(0) == 1 {
			return up
		}
		return down
	case Down:
		return down
	case Up:
		return up
	case Floor:
		return floor
	}
	return ceil
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func check(t *testing.T, what string, got Decimal128, ok bool, want *big.Int, wantOk bool) {
	t.Helper()
	if ok != wantOk || ok && bigOf(got).Cmp(want) != 0 {
		t.Fatalf("%s = %v, %v; want %v, %v", what, bigOf(got), ok, want, wantOk)
	}
}

const rounds = 20000

func TestArithmeticEqualsBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		a, b := randomDecimal(r), randomDecimal(r)
		x, y := bigOf(a), bigOf(b)
		sum, ok := a.Add(b)
		want := new(big.Int).Add(x, y)
		check(t, "sum", sum, ok, want, fits128(want))
		diff, ok := a.Sub(b)
		want = new(big.Int).Sub(x, y)
		check(t, "difference", diff, ok, want, fits128(want))
		prod, ok := a.Mul(b)
		want = new(big.Int).Mul(x, y)
		check(t, x.String()+" * "+y.String(), prod, ok, want, fits128(want))
		neg, ok := a.Neg()
		want = new(big.Int).Neg(x)
		check(t, "negative", neg, ok, want, fits128(want))
		abs, ok := a.Abs()
		want = new(big.Int).Abs(x)
		check(t, "magnitude", abs, ok, want, fits128(want))
		if a.Cmp(b) != x.Cmp(y) || a.Sign() != x.Sign() || a.IsInt64() != x.IsInt64() {
			t.Fatalf("%v and %v compare wrongly", x, y)
		}
		p := r.IntN(42)
		if a.Fits(p) != (new(big.Int).Abs(x).Cmp(tenTo(p)) < 0) {
			t.Fatalf("%v fits %d digits: %v", x, p, a.Fits(p))
		}
	}
}

func TestDivisionRoundsAsNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, rounding := range roundings {
		for range rounds / 4 {
			a, b := randomDecimal(r), randomDecimal(r)
			got, ok := a.Quo(b, rounding)
			if b.IsZero() {
				if ok {
					t.Fatal("division by zero gave a value")
				}
				continue
			}
			want := roundRat(new(big.Rat).SetFrac(bigOf(a), bigOf(b)), rounding)
			check(t, name+" "+bigOf(a).String()+" / "+bigOf(b).String(), got, ok, want, fits128(want))
		}
	}
}

func TestHalvesRoundAsNamed(t *testing.T) {
	want := map[string][4]int64{ // 25, -25, 24, -24 without their last digit
		"HalfAwayFromZero": {3, -3, 2, -2}, "HalfEven": {2, -2, 2, -2}, "Down": {2, -2, 2, -2},
		"Up": {3, -3, 3, -3}, "Floor": {2, -3, 2, -3}, "Ceil": {3, -2, 3, -2},
	}
	for name, w := range want {
		for i, v := range [...]int64{25, -25, 24, -24} {
			if got := DecimalFromInt64(v).DivPow10(1, roundings[name]).Int64(); got != w[i] {
				t.Errorf("%s of %d tenths = %d, want %d", name, v, got, w[i])
			}
		}
	}
}

func TestRescaleEqualsBig(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, rounding := range roundings {
		for range rounds / 4 {
			a := randomDecimal(r)
			from, to := r.IntN(45), r.IntN(45)
			got, ok := a.Rescale(from, to, rounding)
			x := new(big.Rat).SetFrac(new(big.Int).Mul(bigOf(a), tenTo(to)), tenTo(from))
			want := roundRat(x, rounding)
			check(t, name+" "+bigOf(a).String(), got, ok, want, fits128(want))
		}
	}
}

func TestDivideEqualsBig(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, rounding := range roundings {
		for range rounds / 2 {
			a, b := randomDecimal(r), randomDecimal(r)
			as, bs, scale := r.IntN(39), r.IntN(39), r.IntN(39)
			got, ok := Divide(a, as, b, bs, scale, rounding)
			e := scale + bs - as
			if b.IsZero() || e > 38 || e < -38 {
				if ok {
					t.Fatalf("Divide gave a value for divisor %v, %d digits apart", bigOf(b), e)
				}
				continue
			}
			x := new(big.Rat).SetFrac(new(big.Int).Mul(bigOf(a), tenTo(bs+scale)), new(big.Int).Mul(bigOf(b), tenTo(as)))
			want := roundRat(x, rounding)
			check(t, name+" "+a.Text(as)+" / "+b.Text(bs)+" at "+itoa(int64(scale)), got, ok, want, fits128(want))
		}
	}
}

func TestMultiplyEqualsBig(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for name, rounding := range roundings {
		for range rounds / 2 {
			a, b := randomDecimal(r), randomDecimal(r)
			as, bs, scale := r.IntN(39), r.IntN(39), r.IntN(39)
			got, ok := Multiply(a, as, b, bs, scale, rounding)
			x := new(big.Rat).SetFrac(new(big.Int).Mul(new(big.Int).Mul(bigOf(a), bigOf(b)), tenTo(scale)), tenTo(as+bs))
			want := roundRat(x, rounding)
			check(t, name+" "+a.Text(as)+" * "+b.Text(bs)+" at "+itoa(int64(scale)), got, ok, want, fits128(want))
		}
	}
}

func TestTextReadsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range rounds {
		a := randomDecimal(r)
		if !a.Fits(38) {
			continue
		}
		scale := r.IntN(39)
		text := a.Text(scale)
		x, ok := new(big.Rat).SetString(text)
		if !ok || x.Cmp(new(big.Rat).SetFrac(bigOf(a), tenTo(scale))) != 0 {
			t.Fatalf("%v at scale %d printed as %s", bigOf(a), scale, text)
		}
		if back, ok := ParseDecimal(text, scale, Down); !ok || back != a {
			t.Fatalf("%s read back as %v, %v", text, bigOf(back), ok)
		}
		back, s, ok := ScanDecimal(text)
		if !ok || s != scale || back != a {
			t.Fatalf("%s scanned as %v, %d, %v", text, bigOf(back), s, ok)
		}
	}
}

func TestParseRoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for name, rounding := range roundings {
		for range rounds / 4 {
			text := randomNumber(r)
			scale := r.IntN(20)
			got, ok := ParseDecimal(text, scale, rounding)
			x, good := new(big.Rat).SetString(text)
			if !good {
				t.Fatalf("big reads no number in %q", text)
			}
			want := roundRat(x.Mul(x, new(big.Rat).SetInt(tenTo(scale))), rounding)
			if fit := new(big.Int).Abs(want).Cmp(tenTo(38)); fit > 0 {
				if ok {
					t.Fatalf("%s %q at scale %d gave %v", name, text, scale, bigOf(got))
				}
				continue
			}
			check(t, name+" "+text+" at "+itoa(int64(scale)), got, ok, want, true)
		}
	}
}

func randomNumber(r *rand.Rand) string {
	b := []byte{}
	if r.IntN(2) == 0 {
		b = append(b, '-')
	}
	for range 1 + r.IntN(12) {
		b = append(b, byte('0'+r.IntN(10)))
	}
	if r.IntN(3) > 0 {
		b = append(b, '.')
		for range 1 + r.IntN(45) {
			b = append(b, "0000559"[r.IntN(7)])
		}
	}
	if r.IntN(4) == 0 {
		b = appendInt(append(b, 'e'), int64(r.IntN(40)-25))
	}
	return string(b)
}

func TestParseRefusesWhatIsNoNumber(t *testing.T) {
	for _, text := range []string{"", "-", "+", ".", "-.", "1,5", "1 000", " 1", "1 ", "1.2.3", "0x10", "NaN", "Inf", "1e", "1e+", "e5", "--1", "١"} {
		if d, ok := ParseDecimal(text, 2, HalfUp); ok {
			t.Errorf("%q was read as %s", text, d.Text(2))
		}
	}
}

func TestFloatIsItsShortestText(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for i := range rounds {
		f := math.Float64frombits(r.Uint64())
		switch i % 4 {
		case 0:
			f = float64(r.Int64N(1e12)-5e11) / 100
		case 1:
			f = math.Trunc((r.Float64()-0.5)*1e9) / 1e6
		case 2:
			f = (r.Float64() - 0.5) * 1e7
		}
		text := strconv.FormatFloat(f, 'f', -1, 64)
		for scale := range 4 {
			want, wantOk := ParseDecimal(text, scale, HalfUp)
			got, ok := DecimalFromFloat64(f, scale, HalfUp)
			if got != want || ok != wantOk {
				t.Fatalf("%s at scale %d gave %s, %v; want %s, %v", text, scale, got.Text(scale), ok, want.Text(scale), wantOk)
			}
		}
		d, scale, ok := ScanFloat64(f)
		if want, wantOk := ParseDecimal(text, scale, HalfEven); d != want || ok != wantOk {
			t.Fatalf("%s scanned as %s, %v", text, d.Text(scale), ok)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e39} {
		if _, ok := DecimalFromFloat64(f, 0, HalfUp); ok {
			t.Errorf("%g was read as a decimal", f)
		}
	}
	if d, ok := DecimalFromFloat64(1.005, 2, HalfUp); !ok || d.Text(2) != "1.01" {
		t.Errorf("1.005 rounded to %s", d.Text(2))
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(uint64(12345), int64(0), 2, uint64(1084200), int64(0), 6, 2, uint8(0))
	f.Add(^uint64(0), int64(math.MaxInt64), 0, uint64(1), int64(1), 0, 0, uint8(1))
	f.Fuzz(func(t *testing.T, alo uint64, ahi int64, as int, blo uint64, bhi int64, bs int, scale int, r uint8) {
		a, b, rounding := Decimal128{alo, ahi}, Decimal128{blo, bhi}, Rounding(r%6)
		as, bs, scale = as&31, bs&31, scale&31
		got, ok := Divide(a, as, b, bs, scale, rounding)
		if e := scale + bs - as; b.IsZero() || e > 38 || e < -38 {
			return
		}
		x := new(big.Rat).SetFrac(new(big.Int).Mul(bigOf(a), tenTo(bs+scale)), new(big.Int).Mul(bigOf(b), tenTo(as)))
		want := roundRat(x, rounding)
		check(t, "quotient", got, ok, want, fits128(want))
	})
}

var sink Decimal128

func BenchmarkDivideRates(b *testing.B) {
	rate := DecimalFromInt64(1084200)
	for i := range b.N {
		sink, _ = Divide(DecimalFromInt64(int64(i)*7919), 2, rate, 6, 2, HalfAwayFromZero)
	}
}

func BenchmarkDivideWide(b *testing.B) {
	rate := DecimalFromInt64(1084200)
	big := Decimal128{1, 1 << 20}
	for range b.N {
		sink, _ = Divide(big, 2, rate, 6, 2, HalfAwayFromZero)
	}
}
