package sql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// pattern is a date pattern of Spark's, taken apart.
type pattern struct {
	text  string
	parts []patternPart
}

// patternPart is letters, such as MM, or a text between them.
type patternPart struct {
	letters string
	text    string
}

func badPattern(format string, args ...any) error {
	return fault.New("INVALID_DATETIME_PATTERN", format, args...)
}

func parsePattern(text string) (*pattern, error) {
	p := &pattern{text: text}
	add := func(s string) {
		if n := len(p.parts); n > 0 && p.parts[n-1].letters == "" {
			p.parts[n-1].text += s
			return
		}
		p.parts = append(p.parts, patternPart{text: s})
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, badPattern("the pattern %q has a quote that does not close", text)
			}
			if end == 0 {
				add("'")
			} else {
				add(text[i+1 : i+1+end])
			}
			i += end + 2
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			n := 1
			for i+n < len(text) && text[i+n] == c {
				n++
			}
			p.parts = append(p.parts, patternPart{letters: text[i : i+n]})
			i += n
		case strings.IndexByte("[]{}#", c) >= 0:
			return nil, badPattern("the pattern %q has a %c, which is not supported", text, c)
		default:
			add(text[i : i+1])
			i++
		}
	}
	return p, nil
}

// writes are the letters of a pattern when a time is written, in strftime's
// spelling, or as SQL over __1 where that begins with a parenthesis.
var writes = map[string]string{
	"yyyy": "(lpad(CAST(year(__1) AS VARCHAR), 4, '0'))", "y": "(CAST(year(__1) AS VARCHAR))", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m",
	"LLLL": "%B", "LLL": "%b", "LL": "%m", "L": "%-m", "dd": "%d", "d": "%-d", "DDD": "%j", "D": "%-j", "EEEE": "%A", "EEE": "%a", "EE": "%a", "E": "%a",
	"HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M", "ss": "%S", "s": "%-S", "SSS": "%g", "SSSSSS": "%f", "a": "%p",
	"Q": "(CAST(quarter(__1) AS VARCHAR))", "q": "(CAST(quarter(__1) AS VARCHAR))", "QQ": "('0' || quarter(__1))", "K": "(CAST(hour(__1) % 12 AS VARCHAR))",
	"XXX": "(" + zoneOf + ")",
	"KK":  "(lpad(CAST(hour(__1) % 12 AS VARCHAR), 2, '0'))", "k": "(CAST(CASE hour(__1) WHEN 0 THEN 24 ELSE hour(__1) END AS VARCHAR))",
}

// zoneOf writes the offset of the instant __2, whose time on the wall is __1.
const zoneOf = `CASE epoch(timezone('UTC', __1)) - epoch(__2) WHEN 0 THEN 'Z' ELSE CASE WHEN timezone('UTC', __1) < __2 THEN '-' ELSE '+' END
	|| strftime(TIMESTAMP '2000-01-01 00:00:00' + to_microseconds(abs(epoch_us(timezone('UTC', __1)) - epoch_us(__2))), '%H:%M') END`

// format gives the SQL that writes the time __1, a TIMESTAMP, in the pattern; __2 is the instant.
func (p *pattern) format() (string, error) {
	var sql []string
	plain := ""
	flush := func() {
		if plain != "" {
			sql = append(sql, "strftime(__1, "+quoteText(plain)+")")
		}
		plain = ""
	}
	for _, part := range p.parts {
		if part.letters == "" {
			plain += strings.ReplaceAll(part.text, "%", "%%")
			continue
		}
		how, ok := writes[part.letters]
		if !ok && strings.Trim(part.letters, "S") == "" && len(part.letters) < 6 {
			how, ok = fmt.Sprintf("(substring(strftime(__1, '%%f'), 1, %d))", len(part.letters)), true
		}
		switch {
		case !ok:
			return "", badPattern("the letters %s of the pattern %q are not supported", part.letters, p.text)
		case how[0] == '(':
			flush()
			sql = append(sql, how)
		default:
			plain += how
		}
	}
	flush()
	if len(sql) == 0 {
		return "CASE WHEN __1 IS NOT NULL THEN '' END", nil
	}
	return strings.Join(sql, " || "), nil
}

// reads are the letters of a pattern when a time is read: what must stand there
// and how strptime is told.
var reads = map[string][2]string{
	"yyyy": {`[0-9]{4}`, "%Y"}, "yy": {`[0-9]{2}`, "%Y"}, "MM": {`[0-9]{2}`, "%m"}, "M": {`[0-9]{1,2}`, "%m"}, "dd": {`[0-9]{2}`, "%d"}, "d": {`[0-9]{1,2}`, "%d"},
	"MMM": {`[A-Za-z]{3}`, "%b"}, "MMMM": {`[A-Za-z]{3,9}`, "%B"}, "DDD": {`[0-9]{3}`, "%j"},
	"HH": {`(?:[01][0-9]|2[0-3])`, "%H"}, "H": {`(?:[01]?[0-9]|2[0-3])`, "%H"}, "hh": {`(?:0[1-9]|1[0-2])`, "%I"}, "h": {`(?:0?[1-9]|1[0-2])`, "%I"},
	"mm": {`[0-5][0-9]`, "%M"}, "m": {`[0-5]?[0-9]`, "%M"}, "ss": {`[0-5][0-9]`, "%S"}, "s": {`[0-5]?[0-9]`, "%S"}, "a": {`(?i:AM|PM)`, "%p"},
	"SSS": {`[0-9]{3}`, "%g"}, "SSSSSS": {`[0-9]{6}`, "%f"}, "XXX": {`(?:Z|[+-][0-9]{2}:[0-9]{2})`, "%z"},
}

// parse gives the SQL that reads the text __1 in the pattern, as a TIMESTAMP or,
// zoned, as one with a time zone. A text that does not fit is an error, or NULL
// with try.
func (p *pattern) parse(try bool) (sql string, zoned bool, err error) {
	var before, year, after, format strings.Builder
	short := false
	seen := map[string]bool{}
	for i, part := range p.parts {
		out := &before
		if short {
			out = &after
		}
		if part.letters == "" {
			out.WriteString(regexp.QuoteMeta(part.text))
			format.WriteString(strings.ReplaceAll(part.text, "%", "%%"))
			continue
		}
		how, ok := reads[part.letters]
		switch field := part.letters[:1]; {
		case !ok, seen[field], field == "X" && i != len(p.parts)-1:
			return "", false, badPattern("the letters %s of the pattern %q are not supported", part.letters, p.text)
		default:
			seen[field] = true
		}
		if part.letters == "yy" {
			year.WriteString(how[0])
			short = true
		} else {
			out.WriteString(how[0])
		}
		format.WriteString(how[1])
	}
	hours := seen["h"] != seen["a"] || seen["h"] && seen["H"]
	if !seen["y"] || seen["D"] && (seen["M"] || seen["d"]) || hours {
		return "", false, badPattern("the pattern %q does not tell a time: it needs a year, and h goes with a", p.text)
	}
	value := fmt.Sprintf("regexp_extract(__1, %s, 1)", quoteText("^("+before.String()+")$"))
	if short {
		pieces := quoteText("^(" + before.String() + ")(" + year.String() + ")(" + after.String() + ")$")
		value = fmt.Sprintf(`CASE WHEN regexp_matches(__1, %s) THEN regexp_replace(__1, %s, '\120\2\3') WHEN __1 IS NOT NULL THEN '' END`, pieces, pieces)
	}
	if zoned = seen["X"]; zoned {
		value = "regexp_replace(" + value + ", 'Z$', '+00:00')"
	}
	read := "strptime"
	if try {
		read = "try_strptime"
	}
	return fmt.Sprintf("%s(%s, %s)", read, value, quoteText(format.String())), zoned, nil
}
