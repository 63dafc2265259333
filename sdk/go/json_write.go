package weir

// appendJSONString writes text as a JSON string. Bytes that are no UTF-8 become U+FFFD.
//
//go:noinline
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

// jsonWriter writes JSON in the order it is called. Members that are empty are left out. Its methods
// are called from everywhere and never hot: inlined they would only make modules larger.
type jsonWriter struct {
	buf   []byte
	comma bool
}

//go:noinline
func (w *jsonWriter) separate() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

//go:noinline
func (w *jsonWriter) open(c byte) {
	w.separate()
	w.buf = append(w.buf, c)
	w.comma = false
}

//go:noinline
func (w *jsonWriter) close(c byte) {
	w.buf = append(w.buf, c)
	w.comma = true
}

//go:noinline
func (w *jsonWriter) key(name string) {
	w.separate()
	w.buf = append(appendJSONString(w.buf, name), ':')
	w.comma = false
}

//go:noinline
func (w *jsonWriter) value(s string) {
	w.separate()
	w.buf = appendJSONString(w.buf, s)
}

//go:noinline
func (w *jsonWriter) text(name, value string) {
	if value != "" {
		w.key(name)
		w.value(value)
	}
}

func (w *jsonWriter) number(name string, v int64) {
	w.key(name)
	w.buf = appendInt(w.buf, v)
	w.comma = true
}

//go:noinline
func (w *jsonWriter) flag(name string, v bool) {
	if v {
		w.bool(name, true)
	}
}

//go:noinline
func (w *jsonWriter) bool(name string, v bool) {
	w.key(name)
	if v {
		w.buf = append(w.buf, "true"...)
	} else {
		w.buf = append(w.buf, "false"...)
	}
	w.comma = true
}

//go:noinline
func (w *jsonWriter) list(name string, values []string) {
	if len(values) > 0 {
		w.strings(name, values)
	}
}

// strings writes the list even when it is empty.
func (w *jsonWriter) strings(name string, values []string) {
	w.key(name)
	w.open('[')
	for _, v := range values {
		w.value(v)
	}
	w.close(']')
}

// texts writes an object of texts in the order of their keys: a manifest is the same in every run.
func (w *jsonWriter) texts(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sortTexts(keys)
	w.key(name)
	w.open('{')
	for _, k := range keys {
		w.key(k)
		w.value(m[k])
	}
	w.close('}')
}

// sortTexts sorts the few keys of an object; package slices would add 15 kB to a module.
func sortTexts(s []string) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}
