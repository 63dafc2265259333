package delta

import (
	"crypto/sha256"
	"encoding/hex"
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

// hiveEscape escapes a column name or value for a partition directory, as Hive
// does, and what is not ASCII, too: a directory may have any name, and other
// engines do not agree on how such a path stands in the log. Spark writes it raw
// and its VACUUM deletes live files of escaped ones; delta-rs writes it escaped
// and its DELETE does not find raw ones.
func hiveEscape(s string) string {
	return escapeBytes(s, func(c byte) bool {
		return c < ' ' || c >= 0x7F || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0
	})
}

// asciiName escapes what is not ASCII for a file name, for the same reason.
func asciiName(s string) string {
	return escapeBytes(s, func(c byte) bool { return c >= 0x7F })
}

// maxPathElement is the longest directory of a partition; file systems take 255 bytes.
const maxPathElement = 200

// shortElement keeps an element of a path that fits, and cuts one that does
// not, with the hash of the whole in place of its end.
func shortElement(s string) string {
	if len(s) <= maxPathElement {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	head := s[:maxPathElement-2*16-1]
	if i := strings.LastIndexByte(head, '%'); i >= len(head)-2 {
		head = head[:i] // an escape in two
	}
	return head + "-" + hex.EncodeToString(sum[:16])
}

func escapeBytes(s string, special func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; special(c) {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
