package main

import "github.com/weir-data/weir/sdk/go"

const (
	maxAgeKey     = "sap.max_rate_age_days"
	defaultMaxAge = 10

	eurPrecision = 18
	eurScale     = 2
)

// convert is vbap_typed: NETWR in WAERK becomes euro. ECB rates are units per euro, so it divides; the
// quotient is rounded once, half away from zero. A row whose amount is NULL has no amount in euro and
// no error: the change record of a deletion carries nothing but its key.
func convert(c *weir.Call) error {
	maxAge, err := maxRateAge(c)
	if err != nil {
		return err
	}
	rates, err := ratesOf(c.Input(1))
	if err != nil {
		return err
	}
	in, out := c.Input(0), c.Output()
	for in.Next() {
		b := in.Batch()
		eur := out.Column("net_amount_eur").Decimal128(eurPrecision, eurScale)
		convertBatch(b, rates, maxAge, eur)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func maxRateAge(c *weir.Call) (int32, error) {
	text, ok := c.Conf(maxAgeKey)
	if !ok {
		return defaultMaxAge, nil
	}
	d, ok := weir.ParseDecimal(text, 0, weir.Down)
	if whole, scale, _ := weir.ScanDecimal(text); !ok || scale > 0 || whole.Sign() < 0 || !d.Fits(6) {
		return 0, weir.Error("[INVALID_CONF] " + maxAgeKey + " is \"" + text + "\", which is no number of days")
	}
	return int32(d.Int64()), nil
}

func convertBatch(b *weir.Batch, rates *rateTable, maxAge int32, eur *weir.DecimalBuilder) {
	amounts, days := amountsOf(b.Column("NETWR")), daysOf(b.Column("ERDAT"))
	currencies := b.Column("WAERK").String()
	dst := eur.Extend(b.Len())
	for i := range dst {
		if amounts.Null(i) {
			eur.SetNull(i)
			continue
		}
		amount, scale, ok := amounts.at(i)
		if !ok {
			b.RowError(i, "INVALID_AMOUNT", "NETWR is not a number of up to 38 digits")
			continue
		}
		day, ok := days.at(i)
		if !ok {
			b.RowError(i, "INVALID_DATE", "ERDAT is empty or not a date")
			continue
		}
		rate, why := rates.find(currencies, i, day, maxAge)
		if why != found {
			b.RowError(i, why.code(), why.message(currencies.At(i), day))
			continue
		}
		value, ok := weir.Divide(amount, scale, rate.value, rate.scale, eurScale, weir.HalfAwayFromZero)
		if !ok || !value.Fits(eurPrecision) {
			b.RowError(i, "INVALID_AMOUNT", "the amount in euro does not fit decimal(18,2)")
			continue
		}
		dst[i] = value
	}
}
