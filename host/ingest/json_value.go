package ingest

import (
	"encoding/base64"
)

// mismatch rescues a value that does not fit its column; the row stays null.
func (d *jsonDecoder) mismatch(c *column, i, p int) int {
	end := d.skip(p)
	if end < 0 {
		return -1
	}
	d.misfit(c, i, p, end)
	return end
}

func (d *jsonDecoder) misfit(c *column, i, p, end int) {
	if d.keeps() {
		d.rescueValue(&d.res, c.path(), p, end)
	}
	c.truncate(i)
}

// value reads the value at p into row i of a column and gives its end.
func (d *jsonDecoder) value(c *column, i, p int) int {
	ch := d.b[p]
	if ch == 'n' {
		if d.b[p+1] == 'u' && d.b[p+2] == 'l' && d.b[p+3] == 'l' {
			if c.n > i {
				c.truncate(i)
			}
			return p + 4
		}
		return d.notAValue(p)
	}
	switch c.kind {
	case kindString:
		if ch == '"' {
			return d.stringValue(c, i, p)
		}
		return d.textValue(c, i, p)
	case kindInt64:
		if end, v, ok := d.smallInt(p); ok {
			c.put64(i, uint64(v))
			return end
		}
		return d.intValue(c, i, p)
	case kindInt32, kindInt16, kindInt8:
		return d.intValue(c, i, p)
	case kindFloat64, kindFloat32:
		return d.floatValue(c, i, p)
	case kindDecimal:
		return d.decimalValue(c, i, p)
	case kindBool:
		lit := "false"
		if ch == 't' {
			lit = "true"
		}
		if ch == 't' || ch == 'f' {
			end := d.word(p, lit)
			if end > 0 {
				c.putBool(i, ch == 't')
			}
			return end
		}
		return d.mismatch(c, i, p)
	case kindTimestamp, kindTimestampNTZ, kindDate:
		return d.timeValue(c, i, p)
	case kindStruct:
		if ch != '{' {
			return d.mismatch(c, i, p)
		}
		c.align(i)
		if p = d.object(c.obj, c, i, p+1); p >= 0 {
			c.set(i)
		}
		return p
	case kindList:
		if ch != '[' {
			return d.mismatch(c, i, p)
		}
		return d.list(c, i, p+1)
	case kindMap:
		if ch != '{' {
			return d.mismatch(c, i, p)
		}
		return d.mapValue(c, i, p+1)
	default:
		return d.binaryValue(c, i, p)
	}
}

// stringValue copies a string into its column, escapes resolved.
func (d *jsonDecoder) stringValue(c *column, i, p int) int {
	end, escapes := d.str(p+1, d.b[p])
	if end < 0 {
		return -1
	}
	raw := d.b[p+1 : end]
	dst := c.room(i, len(raw))
	n := len(raw)
	if escapes {
		n = unescape(dst, raw)
	} else {
		copy(dst, raw)
	}
	c.putRoom(i, n)
	return end + 1
}

// textValue puts what is no string into a string column, as it was written.
func (d *jsonDecoder) textValue(c *column, i, p int) int {
	if d.b[p] == '\'' && d.rules.singleQuotes {
		return d.stringValue(c, i, p)
	}
	end := d.skip(p)
	if end >= 0 {
		c.putBytes(i, d.b[p:end])
	}
	return end
}

// smallInt reads an integer of at most 18 digits.
func (d *jsonDecoder) smallInt(p int) (end int, v int64, ok bool) {
	start := p
	neg := d.b[p] == '-'
	if neg {
		p++
		start++
	}
	for {
		c := d.b[p] - '0'
		if c > 9 {
			break
		}
		v = v*10 + int64(c)
		p++
	}
	if n := p - start; n == 0 || n > 18 || d.b[start] == '0' && n > 1 {
		return p, 0, false
	}
	if c := d.b[p]; c == '.' || c|0x20 == 'e' {
		return p, 0, false
	}
	if neg {
		v = -v
	}
	return p, v, true
}

func (d *jsonDecoder) intValue(c *column, i, p int) int {
	if d.token(p) != tokNumber {
		return d.mismatch(c, i, p)
	}
	end, whole := d.number(p)
	if end < 0 {
		return -1
	}
	v, ok := int64(0), false
	if whole {
		v, ok = parseInt(d.b[p:end])
	}
	if !ok || !c.putInt(i, v) {
		d.misfit(c, i, p, end)
	}
	return end
}

func (d *jsonDecoder) floatValue(c *column, i, p int) int {
	var v float64
	var end int
	ok := false
	switch d.token(p) {
	case tokNumber:
		if end, _ = d.number(p); end < 0 {
			return -1
		}
		bits := 64
		if c.kind == kindFloat32 {
			bits = 32
		}
		v, ok = parseFloat(d.b[p:end], bits)
	case tokNonNumber:
		end = d.nonNumber(p)
		v, ok = nonNumeric(text(d.b[p:end]))
	case tokString:
		stop, _ := d.str(p+1, d.b[p])
		if stop < 0 {
			return -1
		}
		end = stop + 1
		if d.rules.nonNumeric {
			v, ok = nonNumeric(text(d.b[p+1 : stop]))
		}
	default:
		return d.mismatch(c, i, p)
	}
	if !ok {
		d.misfit(c, i, p, end)
		return end
	}
	c.putFloat(i, v)
	return end
}

func (d *jsonDecoder) decimalValue(c *column, i, p int) int {
	var end int
	var v decimal
	var ok bool
	switch d.token(p) {
	case tokNumber:
		if end, _ = d.number(p); end < 0 {
			return -1
		}
		v, ok = parseDecimal(d.b[p:end], c.precision, c.scale)
	case tokString:
		stop, _ := d.str(p+1, d.b[p])
		if stop < 0 {
			return -1
		}
		end = stop + 1
		v, ok = parseDecimal(withoutCommas(d.b[p+1:stop]), c.precision, c.scale)
	default:
		return d.mismatch(c, i, p)
	}
	if !ok {
		d.misfit(c, i, p, end)
		return end
	}
	c.putDecimal(i, v)
	return end
}

// timeValue reads a date or timestamp: text, or for a timestamp with zone a
// whole number of seconds since the epoch, as Spark.
func (d *jsonDecoder) timeValue(c *column, i, p int) int {
	switch d.token(p) {
	case tokString:
		stop, escapes := d.str(p+1, d.b[p])
		if stop < 0 {
			return -1
		}
		v := d.b[p+1 : stop]
		if escapes {
			d.scratch = append(d.scratch[:0], v...)
			d.scratch = d.scratch[:unescape(d.scratch, v)]
			v = d.scratch
		}
		if n, ok := d.c.timeOf(c.kind, v); !ok || !c.putInt(i, n) {
			d.misfit(c, i, p, stop+1)
		}
		return stop + 1
	case tokNumber:
		end, whole := d.number(p)
		if end < 0 {
			return -1
		}
		const most = int64(1<<63-1) / microsPerSecond
		if v, ok := parseInt(d.b[p:end]); whole && ok && c.kind == kindTimestamp && v <= most && v >= -most {
			c.put64(i, uint64(v*microsPerSecond))
		} else {
			d.misfit(c, i, p, end)
		}
		return end
	}
	return d.mismatch(c, i, p)
}

func (d *jsonDecoder) binaryValue(c *column, i, p int) int {
	if d.token(p) != tokString {
		return d.mismatch(c, i, p)
	}
	stop, escapes := d.str(p+1, d.b[p])
	if stop < 0 {
		return -1
	}
	raw := d.b[p+1 : stop]
	if !escapes {
		dst := c.room(i, base64.StdEncoding.DecodedLen(len(raw)))
		if n, err := base64.StdEncoding.Decode(dst, raw); err == nil {
			c.putRoom(i, n)
			return stop + 1
		}
	}
	d.misfit(c, i, p, stop+1)
	return stop + 1
}

func (d *jsonDecoder) list(c *column, i, p int) int {
	if !d.enter(p) {
		return -1
	}
	c.open(i)
	p = d.space(p)
	if d.b[p] == ']' {
		c.shut(i)
		d.depth--
		return p + 1
	}
	for {
		if p = d.value(c.elem, c.items, p); p < 0 {
			return -1
		}
		c.items++
		if d.b[p] <= ' ' || d.b[p] == '/' {
			p = d.space(p)
		}
		switch d.b[p] {
		case ',':
			if p++; d.b[p] <= ' ' || d.b[p] == '/' {
				p = d.space(p)
			}
		case ']':
			c.shut(i)
			d.depth--
			return p + 1
		default:
			if p >= d.end {
				return d.fail(p, "the text ends inside an array")
			}
			return d.fail(p, "an array needs , or ] here")
		}
	}
}

// mapValue reads an object into a map. Of a key that stands twice the first
// value stays, and the others are rescued: a map has no place for both.
func (d *jsonDecoder) mapValue(c *column, i, p int) int {
	if !d.enter(p) {
		return -1
	}
	c.open(i)
	first := c.items
	var seen map[string]struct{}
	p = d.space(p)
	if d.b[p] == '}' {
		c.shut(i)
		d.depth--
		return p + 1
	}
	for {
		k := d.key(p)
		if k.next < 0 {
			return -1
		}
		name := d.b[k.from:k.to]
		dst := c.key.room(c.items, len(name))
		n := len(name)
		if k.escapes {
			n = unescape(dst, name)
		} else {
			copy(dst, name)
		}
		twice := false
		if seen == nil {
			for e := first; e < c.items && !twice; e++ {
				twice = string(c.key.data[c.key.offs[e]:c.key.offs[e+1]]) == string(dst[:n])
			}
			if c.items-first == 32 {
				seen = make(map[string]struct{}, 64)
				for e := first; e < c.items; e++ {
					seen[string(c.key.data[c.key.offs[e]:c.key.offs[e+1]])] = struct{}{}
				}
			}
		}
		if seen != nil && !twice {
			_, twice = seen[string(dst[:n])]
			seen[string(dst[:n])] = struct{}{}
		}
		if twice {
			path := joinPath(c.path(), string(dst[:n]))
			end := d.skip(k.next)
			if end < 0 {
				return -1
			}
			if d.keeps() {
				d.rescueValue(&d.res, path, k.next, end)
			}
			p = end
		} else {
			c.key.putRoom(c.items, n)
			if p = d.value(c.elem, c.items, k.next); p < 0 {
				return -1
			}
			c.items++
		}
		p = d.space(p)
		switch d.b[p] {
		case ',':
			p = d.space(p + 1)
		case '}':
			c.shut(i)
			d.depth--
			return p + 1
		default:
			return d.fail(p, "an object needs , or } here")
		}
	}
}
