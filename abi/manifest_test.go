package abi

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func goodManifests(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/manifests/good/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = text
	}
	return out
}

type badManifest struct {
	Name, Text, Path, Says string
	Schema                 bool // the JSON Schema refuses it as well
}

func badManifests(t testing.TB) []badManifest {
	t.Helper()
	text, err := os.ReadFile("testdata/manifests/bad.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []badManifest
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGoodManifestsReadBackAsTheyWereWritten(t *testing.T) {
	for name, text := range goodManifests(t) {
		m, err := ParseManifest(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseManifest(again)
		if err != nil || !reflect.DeepEqual(m, back) {
			t.Errorf("%s: %v, written again as\n%s", name, err, again)
		}
	}
}

func TestAManifestKeepsWhatItSays(t *testing.T) {
	m, err := ParseManifest(goodManifests(t)["sap.json"])
	if err != nil {
		t.Fatal(err)
	}
	f, number, ok := m.Function("vbap_typed")
	if !ok || number != 0 || !f.RowAligned || !f.Reuse || f.Inputs[0].Columns[2] != "ERDAT" || f.Inputs[1].Columns != nil {
		t.Errorf("function %+v", f)
	}
	var order []string
	for _, r := range f.Passthrough {
		order = append(order, r.Input+">"+r.Output)
	}
	if s := strings.Join(order, " "); s != "VBELN>order_id POSNR>line_number change_type>change_type change_seq>change_seq" {
		t.Errorf("passthrough lost its order: %s", s)
	}
	field, err := f.Output[0].Field()
	if err != nil || field.Type.String() != "decimal(18, 2)" || !field.Nullable {
		t.Errorf("output %v, %v", field, err)
	}
	renames, _, _ := m.Function("vbak_typed")
	if renames.Inputs[0].Columns == nil || len(renames.Inputs[0].Columns) != 0 || renames.Output == nil {
		t.Errorf("an empty projection and an empty output became undeclared: %+v", renames)
	}
	if e := m.Datasets[1].Expectations[1]; e.OnViolation != OnViolationWarn || e.Null != NullViolates {
		t.Errorf("defaults of an expectation: %+v", e)
	}
	if m.Datasets[0].OnRowError != "" || m.Datasets[1].OnRowError != OnRowErrorQuarantine {
		t.Errorf("policies %q and %q", m.Datasets[0].OnRowError, m.Datasets[1].OnRowError)
	}
}

func TestBadManifestsAreRefusedWithThePath(t *testing.T) {
	for _, b := range badManifests(t) {
		_, err := ParseManifest([]byte(b.Text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: accepted (%v)", b.Name, err)
			continue
		}
		if e.Path != b.Path || !strings.Contains(e.Message, b.Says) {
			t.Errorf("%s: %v\nwant path %q and %q", b.Name, err, b.Path, b.Says)
		}
	}
	_, err := ParseManifest([]byte("{\"abi\": 1, \"module\": \"\xff\"}"))
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "not UTF-8") {
		t.Errorf("bad UTF-8: %v", err)
	}
	if _, err := ParseManifest(make([]byte, maxDocument+1)); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("a huge document: %v", err)
	}
}

func TestTheSchemaAgreesWithTheParser(t *testing.T) {
	text, err := os.ReadFile("manifest.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	s := jsonSchema{t, schema["$defs"].(map[string]any)}
	for name, text := range goodManifests(t) {
		if why := s.check(schema, decode(t, text), name); why != "" {
			t.Errorf("the schema refuses %s: %s", name, why)
		}
	}
	for _, b := range badManifests(t) {
		var v any
		if json.Unmarshal([]byte(b.Text), &v) != nil {
			continue
		}
		if why := s.check(schema, v, ""); (why != "") != b.Schema {
			t.Errorf("%s: the schema says %q, refusal expected: %v", b.Name, why, b.Schema)
		}
	}
}

func decode(t testing.TB, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// jsonSchema checks the keywords that manifest.schema.json uses, and fails on others.
type jsonSchema struct {
	t    testing.TB
	defs map[string]any
}

func (s jsonSchema) check(schema map[string]any, v any, path string) string {
	for keyword, arg := range schema {
		if why := s.keyword(schema, keyword, arg, v, path); why != "" {
			return why
		}
	}
	return ""
}

func (s jsonSchema) keyword(schema map[string]any, keyword string, arg, v any, path string) string {
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	text, isText := v.(string)
	switch keyword {
	case "$schema", "$id", "title", "description", "$defs", "default":
	case "$ref":
		return s.check(s.defs[strings.TrimPrefix(arg.(string), "#/$defs/")].(map[string]any), v, path)
	case "type":
		ok := map[string]bool{"object": isObject, "array": isList, "string": isText}[arg.(string)]
		if _, isBool := v.(bool); arg == "boolean" && isBool {
			ok = true
		}
		if !ok {
			return path + " is no " + arg.(string)
		}
	case "const":
		if !reflect.DeepEqual(v, arg) {
			return path + " is another constant"
		}
	case "enum":
		for _, e := range arg.([]any) {
			if reflect.DeepEqual(e, v) {
				return ""
			}
		}
		return path + " is none of the words"
	case "required":
		for _, k := range arg.([]any) {
			if _, ok := object[k.(string)]; isObject && !ok {
				return path + " lacks " + k.(string)
			}
		}
	case "properties":
		for k, sub := range arg.(map[string]any) {
			if x, ok := object[k]; ok {
				if why := s.check(sub.(map[string]any), x, path+"."+k); why != "" {
					return why
				}
			}
		}
	case "additionalProperties":
		properties, _ := schema["properties"].(map[string]any)
		for k, x := range object {
			if _, known := properties[k]; known {
				continue
			}
			sub, isSchema := arg.(map[string]any)
			if !isSchema {
				return path + " has an unknown " + k
			}
			if why := s.check(sub, x, path+"."+k); why != "" {
				return why
			}
		}
	case "items":
		for _, x := range list {
			if why := s.check(arg.(map[string]any), x, path+"[]"); why != "" {
				return why
			}
		}
	case "uniqueItems":
		for i := range list {
			for j := range i {
				if reflect.DeepEqual(list[i], list[j]) {
					return path + " repeats itself"
				}
			}
		}
	case "minItems":
		if isList && float64(len(list)) < arg.(float64) {
			return path + " has too few items"
		}
	case "minLength":
		if isText && float64(utf8.RuneCountInString(text)) < arg.(float64) {
			return path + " is too short"
		}
	case "maxLength":
		if isText && float64(utf8.RuneCountInString(text)) > arg.(float64) {
			return path + " is too long"
		}
	case "pattern":
		pattern := strings.ReplaceAll(arg.(string), `\u`, `\x`)
		pattern = regexp.MustCompile(`\\x00(..)`).ReplaceAllString(pattern, `\x$1`)
		if isText && !regexp.MustCompile(pattern).MatchString(text) {
			return path + " does not match " + pattern
		}
	case "oneOf":
		matches := 0
		for _, sub := range arg.([]any) {
			if s.check(sub.(map[string]any), v, path) == "" {
				matches++
			}
		}
		if matches != 1 {
			return path + " matches not exactly one alternative"
		}
	default:
		s.t.Fatalf("the test does not know the keyword %s", keyword)
	}
	return ""
}

func TestGrantedKeys(t *testing.T) {
	list := []string{"dwh.catalog", "sap.*"}
	for key, want := range map[string]bool{"dwh.catalog": true, "dwh.catalog2": false, "sap.x": true, "sap.x.y": true, "sap": false, "sapx": false, "": false} {
		if Granted(list, key) != want {
			t.Errorf("%q granted: %v", key, !want)
		}
	}
	if Granted(nil, "x") || !Granted([]string{"*"}, "x") {
		t.Error("nothing grants nothing, * everything")
	}
}

func TestRowErrors(t *testing.T) {
	e, err := ParseRowError([]byte(`{"code": "NO_RATE", "message": "none for XYZ"}`))
	if err != nil || e.Code != "NO_RATE" || e.Message != "none for XYZ" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, bad := range []string{"", "{}", `{"code": "no"}`, `{"code": "A B"}`, `{"code": "A", "extra": 1}`, `{"code": 7}`, `{"code": "1A"}`,
		`{"code": "` + strings.Repeat("A", 65) + `"}`, "\xff", `{"code": "A"} {}`} {
		_, err := ParseRowError([]byte(bad))
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalidRowError {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A list or an object that is there and empty stays there: a manifest that is
// written and read again (the cache does it) is the same manifest.
func TestEmptyListsAndObjectsReadBackAsTheyAre(t *testing.T) {
	for _, text := range []string{
		`{"abi":1,"module":"m","functions":[],"datasets":[],"flows":[]}`,
		`{"abi":1,"module":"m","functions":[{"name":"f","kind":"map","inputs":[{"mode":"batch","source":{"format":"json","options":{}}}]}]}`,
		`{"abi":1,"module":"m","functions":[{"name":"f","kind":"map","inputs":[{"mode":"stream","dataset":"a.b","columns":[]}],"output":[],"conf":[]}]}`,
		`{"abi":1,"module":"m","functions":[{"name":"f","kind":"map","inputs":[{"mode":"stream","dataset":"a.b"}],"row_aligned":true,"passthrough":{},"output":[{"name":"x","type":"int"}]}]}`,
		`{"abi":1,"module":"m","datasets":[{"name":"t","type":"streaming_table","table_properties":{},"partition_by":[],"cluster_by":[],"schema":[],"expectations":[]}]}`,
		`{"abi":1,"module":"m","datasets":[{"name":"t","type":"sink","format":"delta","options":{}}]}`,
	} {
		m, err := ParseManifest([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseManifest(again); err != nil || !reflect.DeepEqual(m, back) {
			t.Errorf("%s was written as %s (%v)", text, again, err)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	for _, text := range goodManifests(f) {
		f.Add(text)
	}
	for _, b := range badManifests(f) {
		f.Add([]byte(b.Text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("an error without a name: %v", err)
			}
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseManifest(again); err != nil || !reflect.DeepEqual(m, back) {
			t.Fatalf("%v: %s read back as another manifest than %s", err, again, text)
		}
	})
}
