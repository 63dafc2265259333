package abi

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Types of snapshot versions.
const (
	VersionInt       = "int"
	VersionString    = "string"
	VersionFloat     = "float"
	VersionBytes     = "bytes" // base64
	VersionDate      = "date"
	VersionTimestamp = "timestamp"
	VersionDecimal   = "decimal" // text
)

// maxVersion bounds the text of a version.
const maxVersion = 4096

// Version is a snapshot's version: its type and its value in the one text that
// there is for it.
type Version struct {
	Type, Value string
}

// versionJSON is a version as guests write and read it.
type versionJSON struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// MarshalJSON writes numbers as numbers, everything else as text.
func (v Version) MarshalJSON() ([]byte, error) {
	out := versionJSON{v.Type, v.Value}
	if v.Type == VersionInt || v.Type == VersionFloat {
		out.Value = json.Number(v.Value)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Version) UnmarshalJSON(data []byte) error {
	n, err := parseJSON(data)
	if err != nil {
		return err
	}
	got, err := parseVersion("", &n)
	if err == nil {
		*v = got
	}
	return err
}

// String is the version for people, and for --accept-snapshot.
func (v Version) String() string { return v.Value }

// SnapshotResult is what a snapshot provider says before its first output: the
// version of the rows that follow, or, where Version is nil, that there is no snapshot
// after the latest.
type SnapshotResult struct{ Version *Version }

// ParseSnapshotResult reads the JSON of result_write, strictly. Errors are *Error.
func ParseSnapshotResult(data []byte) (SnapshotResult, error) {
	n, err := parseJSON(data)
	if err != nil {
		return SnapshotResult{}, err
	}
	o := n.object("")
	done := o.flag("done", false)
	version := o.typed("version", 'o')
	if err := o.end(); err != nil {
		return SnapshotResult{}, err
	}
	switch {
	case done == (version != nil):
		return SnapshotResult{}, invalid("", `it is neither {"version": …} nor {"done": true}`)
	case done:
		return SnapshotResult{}, nil
	}
	v, err := parseVersion("version", version)
	return SnapshotResult{&v}, err
}

func parseVersion(path string, n *node) (Version, error) {
	if n.kind != 'o' {
		return Version{}, invalid(path, "expected an object, found %s", kindName(n.kind))
	}
	o := n.object(path)
	v := Version{Type: o.choice("type", "", VersionInt, VersionString, VersionFloat, VersionBytes, VersionDate, VersionTimestamp, VersionDecimal)}
	value := o.take("value")
	if err := o.end(); err != nil {
		return v, err
	}
	path = join(path, "value")
	if value == nil || value.kind != 's' && value.kind != 'n' {
		return v, invalid(path, "is no text and no number")
	}
	if len(value.text) > maxVersion {
		return v, invalid(path, "has %d bytes; a version has at most %d", len(value.text), maxVersion)
	}
	text, ok := canonicalVersion(v.Type, value.text)
	if !ok {
		return v, invalid(path, "%q is no %s", clip(value.text, 80), v.Type)
	}
	v.Value = text
	return v, nil
}

// canonicalVersion gives the one text of a value, so that equal versions are
// equal texts.
func canonicalVersion(typ, text string) (string, bool) {
	switch typ {
	case VersionInt:
		n, err := strconv.ParseInt(text, 10, 64)
		return strconv.FormatInt(n, 10), err == nil
	case VersionFloat:
		f, err := strconv.ParseFloat(text, 64)
		if f == 0 {
			f = 0 // -0 is the same version
		}
		return strconv.FormatFloat(f, 'g', -1, 64), err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	case VersionString:
		return text, true
	case VersionBytes:
		b, err := base64.StdEncoding.DecodeString(text)
		return base64.StdEncoding.EncodeToString(b), err == nil
	case VersionDate:
		d, err := time.Parse(time.DateOnly, text)
		return d.Format(time.DateOnly), err == nil && d.Year() > 0
	case VersionTimestamp:
		t, err := time.Parse(time.RFC3339Nano, text)
		t = t.UTC()
		return t.Format(TimeLayout), err == nil && t.Year() > 0 && t.Year() <= 9999 && t.Nanosecond()%1000 == 0
	case VersionDecimal:
		return canonicalDecimal(text)
	}
	return "", false
}

// canonicalDecimal takes zeros away that say nothing.
func canonicalDecimal(text string) (string, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, part, _ := strings.Cut(digits, ".")
	if whole == "" || strings.Trim(whole+part, "0123456789") != "" {
		return "", false
	}
	whole, part = strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")
	if len(whole)+len(part) > 38 {
		return "", false
	}
	if whole == "" {
		whole = "0"
	}
	if part != "" {
		whole += "." + part
	}
	if negative && whole != "0" {
		whole = "-" + whole
	}
	return whole, true
}

// Compare orders two versions of one type.
func (v Version) Compare(w Version) int {
	switch v.Type {
	case VersionInt, VersionFloat, VersionDecimal:
		a, aok := new(big.Rat).SetString(v.Value)
		b, bok := new(big.Rat).SetString(w.Value)
		if aok && bok {
			return a.Cmp(b)
		}
	case VersionBytes:
		a, _ := base64.StdEncoding.DecodeString(v.Value)
		b, _ := base64.StdEncoding.DecodeString(w.Value)
		return strings.Compare(string(a), string(b))
	}
	return strings.Compare(v.Value, w.Value) // dates and timestamps have a fixed width
}

// VersionType gives the column type of __START_AT and __END_AT for versions that
// a manifest declares: one of the types above, a decimal with its digits as
// decimal(p,s).
func VersionType(declared string) (arrow.DataType, bool) {
	switch declared {
	case VersionInt:
		return arrow.PrimitiveTypes.Int64, true
	case VersionString:
		return arrow.BinaryTypes.String, true
	case VersionFloat:
		return arrow.PrimitiveTypes.Float64, true
	case VersionBytes:
		return arrow.BinaryTypes.Binary, true
	case VersionDate:
		return arrow.FixedWidthTypes.Date32, true
	case VersionTimestamp:
		return arrow.FixedWidthTypes.Timestamp_us, true
	}
	digits, ok := strings.CutPrefix(declared, VersionDecimal+"(")
	digits, closed := strings.CutSuffix(digits, ")")
	p, s, two := strings.Cut(digits, ",")
	precision, perr := strconv.Atoi(strings.TrimSpace(p))
	scale, serr := strconv.Atoi(strings.TrimSpace(s))
	if !ok || !closed || !two || perr != nil || serr != nil || precision < 1 || precision > 38 || scale < 0 || scale > precision {
		return nil, false
	}
	return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, true
}
