package abi

import (
	"encoding/json"
	"testing"
)

// covers A79
func TestSnapshotVersionsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]Version{
		`{"version": {"type": "int", "value": -7}}`:                                   {"int", "-7"},
		`{"version": {"type": "int", "value": "007"}}`:                                {"int", "7"},
		`{"version": {"type": "float", "value": 2.50}}`:                               {"float", "2.5"},
		`{"version": {"type": "float", "value": -0.0}}`:                               {"float", "0"},
		`{"version": {"type": "string", "value": ""}}`:                                {"string", ""},
		`{"version": {"type": "bytes", "value": "/wA="}}`:                             {"bytes", "/wA="},
		`{"version": {"type": "date", "value": "2026-07-29"}}`:                        {"date", "2026-07-29"},
		`{"version": {"type": "timestamp", "value": "2026-07-29T08:00:00.25+02:00"}}`: {"timestamp", "2026-07-29T06:00:00.250000Z"},
		`{"version": {"type": "decimal", "value": "-012.30"}}`:                        {"decimal", "-12.3"},
		`{"version": {"type": "decimal", "value": "-0.0"}}`:                           {"decimal", "0"},
	} {
		got, err := ParseSnapshotResult([]byte(text))
		if err != nil || got.Version == nil || *got.Version != want {
			t.Errorf("%s is %+v, %v", text, got.Version, err)
			continue
		}
		// What a guest is given next is the same version.
		written, err := json.Marshal(got.Version)
		if err != nil {
			t.Fatal(err)
		}
		var again Version
		if err := json.Unmarshal(written, &again); err != nil || again != want {
			t.Errorf("%s was written as %s and read as %+v, %v", text, written, again, err)
		}
	}
	if got, err := ParseSnapshotResult([]byte(`{"done": true}`)); err != nil || got.Version != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{
		``, `{}`, `null`, `{"done": false}`, `{"done": true, "version": {"type": "int", "value": 1}}`, `{"version": {"type": "int", "value": 1}, "more": 1}`,
		`{"version": {"type": "int", "value": 1.5}}`, `{"version": {"type": "int", "value": 9223372036854775808}}`, `{"version": {"type": "int", "value": true}}`,
		`{"version": {"type": "int"}}`, `{"version": {"value": 1}}`, `{"version": {"type": "uuid", "value": "1"}}`, `{"version": 1}`,
		`{"version": {"type": "float", "value": "NaN"}}`, `{"version": {"type": "float", "value": "1e999"}}`, `{"version": {"type": "bytes", "value": "?"}}`,
		`{"version": {"type": "date", "value": "2026-02-30"}}`, `{"version": {"type": "date", "value": "29.07.2026"}}`, `{"version": {"type": "date", "value": "0000-01-01"}}`,
		`{"version": {"type": "timestamp", "value": "2026-07-29 08:00:00"}}`, `{"version": {"type": "timestamp", "value": "2026-07-29T08:00:00.0000001Z"}}`,
		`{"version": {"type": "decimal", "value": "1e5"}}`, `{"version": {"type": "decimal", "value": ".5"}}`, `{"version": {"type": "decimal", "value": "123456789012345678901234567890123456789"}}`,
	} {
		if got, err := ParseSnapshotResult([]byte(text)); err == nil {
			t.Errorf("%s is %+v", text, got)
		}
	}
}

// covers A79
func TestVersionsOfOneTypeHaveAnOrder(t *testing.T) {
	for typ, ascending := range map[string][]string{
		VersionInt:       {"-10", "-9", "0", "9", "10", "9223372036854775807"},
		VersionFloat:     {"-1e+300", "-2.5", "0", "1e-300", "9", "10"},
		VersionString:    {"", "10", "9", "a", "ä"},
		VersionBytes:     {"", "AA==", "AAA=", "AQ==", "/w=="},
		VersionDate:      {"0001-01-01", "2025-12-31", "2026-01-01"},
		VersionTimestamp: {"2025-12-31T23:59:59.999999Z", "2026-01-01T00:00:00.000000Z"},
		VersionDecimal:   {"-12.3", "-12", "0", "0.5", "9", "10"},
	} {
		for i, a := range ascending {
			for j, b := range ascending {
				v, w := Version{typ, a}, Version{typ, b}
				if got := v.Compare(w); (got < 0) != (i < j) || (got > 0) != (i > j) {
					t.Errorf("%s %q to %q is %d", typ, a, b, got)
				}
			}
		}
	}
}

func TestTypesOfVersions(t *testing.T) {
	for declared, want := range map[string]string{"int": "int64", "float": "float64", "string": "utf8", "bytes": "binary", "date": "date32",
		"timestamp": "timestamp[us, tz=UTC]", "decimal(10,2)": "decimal(10, 2)"} {
		if got, ok := VersionType(declared); !ok || got.String() != want {
			t.Errorf("%s is %v", declared, got)
		}
	}
	for _, declared := range []string{"", "decimal", "decimal()", "decimal(39,0)", "decimal(3,4)", "decimal(3,1", "DATE", "bigint"} {
		if got, ok := VersionType(declared); ok {
			t.Errorf("%s is %v", declared, got)
		}
	}
}

func FuzzSnapshotResult(f *testing.F) {
	f.Add([]byte(`{"version": {"type": "timestamp", "value": "2026-07-29T06:00:00.250000Z"}}`))
	f.Add([]byte(`{"version": {"type": "decimal", "value": "-00.10"}}`))
	f.Add([]byte(`{"done": true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseSnapshotResult(text)
		if err != nil || got.Version == nil {
			return
		}
		written, err := json.Marshal(got.Version)
		if err != nil {
			t.Fatal(err)
		}
		var again Version
		if err := json.Unmarshal(written, &again); err != nil || again != *got.Version || again.Compare(*got.Version) != 0 {
			t.Errorf("%s was written as %s and read as %+v, %v", text, written, again, err)
		}
	})
}
