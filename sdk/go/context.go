package weir

import (
	"strconv"

	"github.com/weir-data/weir/sdk/go/internal/host"
)

// Context says where and when a call runs.
type Context struct {
	Pipeline       string
	UpdateID       string
	Flow           string
	BatchID        int64
	Task           int64
	FullRefresh    bool
	BatchTimestamp int64    // microseconds since 1970 in UTC: the clock that a replay reads again
	LatestVersion  *Version // of a snapshot provider; nil before the first snapshot
}

// Version is a snapshot's version: int, string, float, bytes (base64), date, timestamp or decimal.
type Version struct {
	Type  string
	Value string
}

// DateVersion is the version of a daily extract.
func DateVersion(d Date) Version { return Version{"date", d.String()} }

// IntVersion is a counted version.
func IntVersion(v int64) Version { return Version{"int", itoa(v)} }

// StringVersion is a version that compares as text.
func StringVersion(s string) Version { return Version{"string", s} }

// FloatVersion is a version that is a number with a fraction.
func FloatVersion(v float64) Version {
	return Version{"float", strconv.FormatFloat(v, 'g', -1, 64)}
}

// DecimalVersion is a version that is a decimal, as text.
func DecimalVersion(text string) Version { return Version{"decimal", text} }

// TimestampVersion is a moment in microseconds since 1970 in UTC.
func TimestampVersion(micros int64) Version {
	return Version{"timestamp", string(AppendTimestamp(nil, micros))}
}

func (v Version) write(w *jsonWriter) {
	w.open('{')
	w.text("type", v.Type)
	w.key("value")
	if v.Type == "int" || v.Type == "float" {
		w.separate()
		w.buf = append(w.buf, v.Value...)
	} else {
		w.value(v.Value)
	}
	w.close('}')
}

// Context reads where and when the call runs.
func (c *Call) Context() Context {
	if c.context == nil {
		c.context = &Context{}
		text, ok := hostText(host.ContextRead)
		if !ok || !c.context.read(text) {
			c.errs.set(errorf("[CONTEXT_INVALID] the call context cannot be read"))
		}
	}
	return *c.context
}

func (x *Context) read(text string) bool {
	r := jsonReader{text: text}
	return r.object(func(key string) {
		switch key {
		case "pipeline":
			x.Pipeline = r.scalar()
		case "update_id":
			x.UpdateID = r.scalar()
		case "flow":
			x.Flow = r.scalar()
		case "batch_id":
			x.BatchID = r.int()
		case "task":
			x.Task = r.int()
		case "full_refresh":
			x.FullRefresh = r.scalar() == "true"
		case "batch_timestamp":
			x.BatchTimestamp, _, _ = ParseTimestamp(r.scalar())
		case "latest_version":
			x.LatestVersion = r.version()
		default:
			r.skip()
		}
	})
}

func (r *jsonReader) version() *Version {
	if r.null() {
		return nil
	}
	v := &Version{}
	r.object(func(key string) {
		switch key {
		case "type":
			v.Type = r.scalar()
		case "value":
			v.Value = r.scalar()
		default:
			r.skip()
		}
	})
	return v
}
