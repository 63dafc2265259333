package delta

import (
	"encoding/json"
	"maps"
	"testing"
)

// Members are those that encoding/json finds, whatever the text.
func FuzzMembersAreThoseOfTheObject(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : 1 , "b":{"c":[1,{"d":"}"}]}, "e\\"\\u0041":"x\\\\" } `, `{"a":1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[]`, ``, `{"a":1}x`, `{"a":null,"a":true}`, `{"a":"` + "\xff" + `"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := map[string]string{}
		ok := eachMember(text, func(key, value string) { got[key] = value })
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return // what is no JSON may be cut into pieces; each is decoded with care
		}
		if !ok || len(got) != len(want) {
			t.Fatalf("%q: %v, %q, want %q", text, ok, got, want)
		}
		for key := range maps.Keys(got) {
			if have, ok := want[key]; json.Valid([]byte(got[key])) && ok && string(have) != got[key] {
				t.Errorf("%q: %q is %q, want %q", text, key, got[key], have)
			}
		}
	})
}
