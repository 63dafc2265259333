package delta

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

const logFolder = "_delta_log"

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// canonicalPath gives the one spelling of a path of the log: percent-decoded
// once, and without the scheme when that is file.
func canonicalPath(uri string) (string, error) {
	rest := uri
	prefix := ""
	if scheme, after, ok := cutScheme(uri); ok {
		rest = after
		if strings.EqualFold(scheme, "file") {
			rest = "/" + strings.TrimLeft(rest, "/")
		} else {
			prefix = strings.ToLower(scheme) + ":"
		}
	}
	if strings.IndexByte(rest, '%') < 0 {
		return prefix + rest, nil
	}
	name, err := url.PathUnescape(rest)
	if err != nil {
		return "", fault.Wrap(err, "DELTA_INVALID_LOG", "path %q is not a URI", uri)
	}
	return prefix + name, nil
}

// cutScheme splits "scheme:/…". A colon elsewhere, as in a directory of a
// partition, makes no scheme.
func cutScheme(uri string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(uri, ":")
	if !ok || scheme == "" || !strings.HasPrefix(rest, "/") {
		return "", uri, false
	}
	for i, c := range []byte(scheme) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return "", uri, false
		}
	}
	return scheme, rest, true
}

// isAbsolute tells whether a canonical path leads outside the table's root.
func isAbsolute(canonical string) bool {
	if strings.HasPrefix(canonical, "/") {
		return true
	}
	_, _, ok := cutScheme(canonical)
	return ok
}

// fileKey is the identity of a logical file: its path and its deletion vector.
func fileKey(path string, dv *DeletionVector) (string, error) {
	canonical, err := canonicalPath(path)
	if err != nil || dv == nil {
		return canonical, err
	}
	return canonical + "\x00" + dv.id(), nil
}

// uriPath escapes a decoded relative path the way Spark writes it to the log:
// what is neither ASCII nor special stays raw.
func uriPath(name string) string {
	return escapeBytes(name, func(c byte) bool {
		return c <= ' ' || c == 0x7F || strings.IndexByte("\"#%<>?[\\]^`{|}", c) >= 0
	})
}

// hiveEscape escapes a column name or value for a partition directory.
func hiveEscape(s string) string {
	return escapeBytes(s, func(c byte) bool {
		return c < ' ' || c == 0x7F || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0
	})
}

func escapeBytes(s string, special func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; special(c) {
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
