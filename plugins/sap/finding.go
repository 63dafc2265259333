package main

import "github.com/weir-data/weir/sdk/go"

// finding is whether there is a rate, or why not.
type finding uint8

const (
	found finding = iota
	unknownCurrency
	noRate
	rateTooOld
	invalidRate
	ambiguousRate
)

func (f finding) code() string {
	return [...]string{"", "UNKNOWN_CURRENCY", "NO_RATE", "RATE_TOO_OLD", "INVALID_RATE", "AMBIGUOUS_RATE"}[f]
}

func (f finding) message(currency string, day weir.Date) string {
	switch f {
	case unknownCurrency:
		return "there is no rate for currency \"" + currency + "\""
	case noRate:
		return "there is no rate for " + currency + " on or before " + day.String()
	case rateTooOld:
		return "the last rate for " + currency + " before " + day.String() + " is older than " + maxAgeKey
	case invalidRate:
		return "the rate for " + currency + " that holds on " + day.String() + " is not above zero"
	}
	return "there are different rates for " + currency + " that hold on " + day.String()
}
