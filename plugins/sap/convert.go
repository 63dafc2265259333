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
	rates, err := ratesOf(c.Input(1), maxAge)
	if err != nil {
		return err
	}
	in, out := c.Input(0), c.Output()
	for in.Next() {
		r := rowsOf(in.Batch(), rates, out.Column("net_amount_eur").Decimal128(eurPrecision, eurScale))
		if !r.convertPlain() {
			r.each(0, len(r.dst))
		}
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

// rows is a batch on its way into euro.
type rows struct {
	batch      *weir.Batch
	rates      *rateTable
	amounts    amounts
	days       days
	currencies weir.Strings
	eur        *weir.DecimalBuilder
	dst        []weir.Decimal128
}

func rowsOf(b *weir.Batch, rates *rateTable, eur *weir.DecimalBuilder) *rows {
	return &rows{batch: b, rates: rates, eur: eur, dst: eur.Extend(b.Len()),
		amounts: amountsOf(b.Column("NETWR")), days: daysOf(b.Column("ERDAT")), currencies: b.Column("WAERK").String()}
}

// convert converts one row, or reports why it cannot be.
func (r *rows) convert(i int) {
	if r.amounts.Null(i) {
		r.eur.SetNull(i)
		return
	}
	amount, scale, ok := r.amounts.at(i)
	if !ok {
		r.batch.RowError(i, "INVALID_AMOUNT", "NETWR is not a number of up to 38 digits")
		return
	}
	day, ok := r.days.at(i)
	if !ok {
		r.batch.RowError(i, "INVALID_DATE", "ERDAT is empty or not a date")
		return
	}
	rate, why := r.rates.find(r.currencies, i, day)
	if why != found {
		r.batch.RowError(i, why.code(), why.message(r.currencies.At(i), day))
		return
	}
	value, ok := weir.Divide(amount, scale, rate.value, int(rate.scale), eurScale, weir.HalfAwayFromZero)
	if !ok || !value.Fits(eurPrecision) {
		r.batch.RowError(i, "INVALID_AMOUNT", "the amount in euro does not fit decimal(18,2)")
		return
	}
	r.dst[i] = value
}
