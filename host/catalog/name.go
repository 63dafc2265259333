package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-data/weir/host/fault"
)

// maxPart is the longest part of a name, in bytes: what file systems allow
// for one directory, less room for a suffix of our own.
const maxPart = 200

// Name is the full name of a table.
type Name struct{ Catalog, Schema, Table string }

// ParseName reads a name of one to three parts; missing parts come from
// defaults. A part may stand in backticks, a doubled one is a backtick.
func ParseName(s string, defaults Name) (Name, error) {
	if !utf8.ValidString(s) {
		return Name{}, invalid(s, "it is not UTF-8")
	}
	parts, err := splitName(s)
	if err != nil {
		return Name{}, err
	}
	n := Name{Catalog: defaults.Catalog, Schema: defaults.Schema}
	switch len(parts) {
	case 1:
		n.Table = parts[0]
	case 2:
		n.Schema, n.Table = parts[0], parts[1]
	case 3:
		n.Catalog, n.Schema, n.Table = parts[0], parts[1], parts[2]
	default:
		return Name{}, invalid(s, "a table name has at most three parts")
	}
	n = Name{strings.ToLower(n.Catalog), strings.ToLower(n.Schema), strings.ToLower(n.Table)}
	for _, p := range []struct{ what, part string }{{"catalog", n.Catalog}, {"schema", n.Schema}, {"table", n.Table}} {
		if reason := badPart(p.part); reason != "" {
			return Name{}, invalid(s, "the "+p.what+" name "+reason)
		}
	}
	return n, nil
}

func invalid(s, reason string) error {
	return fault.New("INVALID_TABLE_NAME", "%q: %s", s, reason)
}

func splitName(s string) ([]string, error) {
	var parts []string
	for rest := s; ; {
		var part string
		if strings.HasPrefix(rest, "`") {
			var ok bool
			if part, rest, ok = cutQuoted(rest); !ok {
				return nil, invalid(s, "a backtick is not closed")
			}
		} else if i := strings.IndexAny(rest, ".`"); i >= 0 {
			part, rest = rest[:i], rest[i:]
		} else {
			part, rest = rest, ""
		}
		parts = append(parts, part)
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, invalid(s, "a dot is missing between two parts")
		}
		rest = rest[1:]
	}
}

// cutQuoted reads one part in backticks from the start of s.
func cutQuoted(s string) (part, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '`' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '`' {
			b.WriteByte('`')
			i++
			continue
		}
		return b.String(), s[i+1:], true
	}
	return "", "", false
}

// badPart says why a part cannot be a directory of its own, or "". The rules
// are Unity Catalog's, and one more: names that start with _weir are ours.
func badPart(part string) string {
	switch {
	case part == "":
		return "is empty"
	case len(part) > maxPart:
		return "is longer than 200 bytes"
	case strings.HasPrefix(part, "_weir"):
		return "starts with _weir, which is reserved"
	}
	for _, r := range part {
		if r == '/' || r == '\\' || r == '.' || r == ' ' || unicode.IsControl(r) {
			return "holds a slash, a dot, a space or a control character"
		}
	}
	return ""
}

// String gives the name with dots.
func (n Name) String() string { return n.Catalog + "." + n.Schema + "." + n.Table }

// Path gives where the table lies below the storage root.
func (n Name) Path() string { return n.Catalog + "/" + n.Schema + "/" + n.Table }

// Quarantine gives the name of the table that takes this one's refused rows.
func (n Name) Quarantine() Name {
	n.Table += "_quarantine"
	return n
}
