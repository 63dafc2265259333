package weir

// Small text work that strconv and strings would do with more code in the module than it is worth.

// Error is an error text. With a code in brackets at its start it is what the user reads:
// "[NO_PRICE] …".
type Error string

func (e Error) Error() string { return string(e) }

// errorf joins the parts to an error.
//
//go:noinline
func errorf(parts ...string) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(b, p...)
	}
	return Error(b)
}

//go:noinline
func appendInt(b []byte, v int64) []byte {
	if v < 0 {
		b = append(b, '-')
		return appendUint(b, uint64(-v))
	}
	return appendUint(b, uint64(v))
}

func appendUint(b []byte, v uint64) []byte {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = byte('0' + v%10)
		v /= 10
		if v == 0 {
			return append(b, digits[i:]...)
		}
	}
}

//go:noinline
func itoa(v int64) string { return string(appendInt(nil, v)) }

//go:noinline
func lower(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'A' && b[j] <= 'Z' {
					b[j] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}
