package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-data/weir/runtime/meter"
)

// Meter rewrites a module before it is compiled, so that its loops and bulk
// instructions count what they use and give the host a chance to stop them.
// It sees a module that passed the checks of Load and whose size is bounded.
type Meter interface {
	// Rewrite gives the module to compile, or refuses it.
	Rewrite(wasm []byte) ([]byte, error)
	// Version changes whenever Rewrite gives other bytes; it is part of the
	// cache key of compiled code.
	Version() string
}

// shaped is runtime/meter with a module's limits.
type shaped struct{ limits meter.Limits }

// Rewrite implements Meter.
func (s shaped) Rewrite(wasm []byte) ([]byte, error) {
	out, _, err := meter.Rewrite(wasm, s.limits)
	return out, err
}

// Version implements Meter. All limits are part of it, also those that only
// refuse: what compiled under one set must be looked at again under another.
func (s shaped) Version() string { return fmt.Sprintf("%s %+v", meter.Version, s.limits) }

// meterError gives a refusal of the meter this package's form, with the name
// that the limit has in a spec.
func meterError(err error) error {
	var e *meter.Error
	if !errors.As(err, &e) {
		return because(err, CodeInvalidModule, "it cannot be metered")
	}
	out := errorf(e.Code, "%s", e.Message)
	if e.Limit != "" {
		out.Limit, out.Value = specName(e.Limit), e.Value
		out.Message = strings.Replace(e.Message, e.Limit+" =", out.Limit+" =", 1)
	}
	return out
}

// specName gives the name in a spec of a field of meter.Limits.
func specName(field string) string {
	switch field {
	case "MemoryBytes":
		return "memory"
	case "TableElements":
		return "table_size"
	}
	var b strings.Builder
	for i, c := range field {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
