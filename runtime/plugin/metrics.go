package plugin

import "unicode/utf8"

// metrics sums the user metrics of one call, in the order of their first use.
type metrics struct {
	names []string
	sums  map[string]float64
}

func (m *metrics) add(name []byte, value float64, most int64) error {
	if _, ok := m.sums[string(name)]; !ok {
		switch {
		case len(name) == 0 || len(name) > 255 || !utf8.Valid(name):
			return errorf(CodeOutputInvalid, "a metric's name is empty, not UTF-8 or over 255 bytes")
		case int64(len(m.names)) >= most:
			return overLimit("metrics", most, "the number of different metrics")
		}
		if m.sums == nil {
			m.sums = map[string]float64{}
		}
		m.names = append(m.names, string(name))
	}
	m.sums[string(name)] += value
	return nil
}

func (m *metrics) tell(f func(string, float64)) {
	if f == nil {
		return
	}
	for _, n := range m.names {
		f(n, m.sums[n])
	}
}
