package ingest

import (
	"regexp"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// glob is a Hadoop glob: *, ?, [abc], [a-z], [^a], {a,b} and backslash escapes.
// * and ? never cross a slash.
type glob struct {
	text string
	re   *regexp.Regexp
}

func (g *glob) match(s string) bool { return g.re.MatchString(s) }

// globChars are those that make a path segment a glob.
const globChars = "*?[{\\"

func parseGlob(text string) (*glob, error) {
	bad := func(why string) error {
		return fault.New("INVALID_GLOB", "%q: %s", text, why)
	}
	var b strings.Builder
	b.WriteString(`\A(?s:`)
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) {
				return nil, bad("a backslash at the end")
			}
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]")
		case '[':
			end := strings.IndexByte(text[i+1:], ']')
			if end < 1 {
				return nil, bad("a [ without ]")
			}
			set := text[i+1 : i+1+end]
			b.WriteByte('[')
			if set[0] == '^' || set[0] == '!' {
				b.WriteByte('^')
				set = set[1:]
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(set))
			b.WriteByte(']')
			i += end + 1
		case '{':
			depth++
			b.WriteString("(?:")
		case '}':
			if depth == 0 {
				return nil, bad("a } without {")
			}
			depth--
			b.WriteByte(')')
		case ',':
			if depth > 0 {
				b.WriteByte('|')
			} else {
				b.WriteByte(',')
			}
		default:
			b.WriteString(regexp.QuoteMeta(text[i : i+1])) // touches ASCII only: runes stay whole
		}
	}
	if depth > 0 {
		return nil, bad("a { without }")
	}
	b.WriteString(`)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, bad(err.Error())
	}
	return &glob{text, re}, nil
}
