package sql

import (
	"errors"
	"sort"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// substitute puts the values of the configuration in place of ${key}, but not
// inside comments. Inside quotes a value is data: its quotes and backslashes are doubled, so it
// cannot end the text it stands in.
func substitute(src string, conf map[string]string, o *origin) (string, *origin, error) {
	e := newEdit(src)
	quote := byte(0)
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case strings.HasPrefix(src[i:], "${"):
			key, length := variable(src[i:])
			if length == 0 {
				i++
				continue
			}
			value, ok := conf[key]
			if !ok {
				return "", nil, unsetKey(key, conf).At(o.where(i))
			}
			if quote == '\'' || quote == '"' {
				value = strings.ReplaceAll(value, `\`, `\\`)
			}
			if quote != 0 {
				value = strings.ReplaceAll(value, string(quote), string([]byte{quote, quote}))
			}
			e.replace(i, i+length, value)
			i += length
		case c == '\\' && (quote == '\'' || quote == '"'):
			i += 2
		case quote != 0:
			if c == quote {
				quote = 0
			}
			i++
		case c == '\'' || c == '"' || c == '`':
			quote = c
			i++
		case strings.HasPrefix(src[i:], "--") || strings.HasPrefix(src[i:], "/*"):
			end, err := skipComment(src, i)
			if err != nil {
				return "", nil, placed(err, o)
			}
			i = end
		default:
			i++
		}
	}
	text, out := e.finish(o)
	return text, out, nil
}

// variable gives the key of the ${key} that s starts with and the length of
// the whole, or 0 when it is something else.
func variable(s string) (key string, length int) {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return "", 0
	}
	key = strings.TrimSpace(s[2:end])
	for i := range len(key) {
		if !isWordPart(key[i]) && key[i] != '.' && key[i] != '-' && key[i] != ':' {
			return "", 0
		}
	}
	if key == "" {
		return "", 0
	}
	return key, end + 1
}

func unsetKey(key string, conf map[string]string) *fault.Error {
	known := make([]string, 0, len(conf))
	for k := range conf {
		known = append(known, k)
	}
	sort.Strings(known)
	err := fault.New("UNDEFINED_CONFIGURATION", "${%s} is not set", key)
	if len(known) == 0 {
		return err.WithHint("Set %s under configuration in the spec, or with --conf %s=…", key, key)
	}
	return err.WithHint("Set %s under configuration in the spec, or with --conf %s=…; set are %s", key, key, strings.Join(known, ", "))
}

// placed turns a lexError into a fault at its place.
func placed(err error, o *origin) error {
	var l *lexError
	if errors.As(err, &l) {
		return syntaxError(o.where(l.at), "%s", l.msg)
	}
	return err
}
