package weir

import "github.com/weir-data/weir/sdk/go/internal/host"

// Typed is a value of a query whose type the value itself does not tell, such as
// Typed{"decimal(10,2)", "12.50"} or Typed{"timestamp", "2026-07-30T06:00:00Z"}.
type Typed struct {
	Type  string
	Value string
}

// Query runs one SELECT over the batch inputs that the function declared, under the names
// it declared them with, and gives the result as one more input:
//
//	rates, err := c.Query("SELECT currency, max(rate) AS rate FROM bronze.rates WHERE rate_date <= ? GROUP BY currency", day)
//
// Params are values for its ?, or for $1, $2 …: a string, bool, int, int32, int64, [Date],
// [Typed] or nil. They are values: nothing in them is read as SQL. What such a
// query may do is less than SQL of the pipeline may; an error says what it may not.
// Close the reader of a result that is not read to its end.
func (c *Call) Query(sql string, params ...any) (*Reader, error) {
	w := jsonWriter{}
	w.open('{')
	w.text("sql", sql)
	w.key("params")
	w.open('[')
	for i, p := range params {
		if !w.param(p) {
			return nil, errorf("[INVALID_QUERY_PARAMETER] parameter ", itoa(int64(i+1)), " of a query is of a Go type that is no parameter's; use weir.Typed")
		}
	}
	w.close(']')
	w.close('}')
	n := host.Query(w.buf)
	if n < 0 {
		return nil, lastError("a query")
	}
	return &Reader{index: int(n), errs: &c.errs}, nil
}

// param writes one value.
func (w *jsonWriter) param(p any) bool {
	switch p := p.(type) {
	case nil:
		w.literal("null")
	case string:
		w.value(p)
	case bool:
		if p {
			w.literal("true")
		} else {
			w.literal("false")
		}
	case int:
		w.literal(itoa(int64(p)))
	case int32:
		w.literal(itoa(int64(p)))
	case int64:
		w.literal(itoa(p))
	case Date:
		w.typed("date", p.String())
	case Typed:
		w.typed(p.Type, p.Value)
	default:
		return false
	}
	return true
}

func (w *jsonWriter) typed(typ, value string) {
	w.open('{')
	w.key("type")
	w.value(typ)
	w.key("value")
	w.value(value)
	w.close('}')
}

func (w *jsonWriter) literal(text string) {
	w.separate()
	w.buf = append(w.buf, text...)
}
