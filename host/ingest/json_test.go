package ingest

import (
	"testing"
)

func TestJSONDocumentsBecomeRows(t *testing.T) {
	l := newLanding(t, map[string]string{
		"a.json": `{"id":1,"name":"a","price":1.5,"tags":["x","y"],"who":{"first":"A","n":1}}` + "\n" + `{"id":2,"ok":true}`,
		"b.json": `{"name":"caf\u00e9 \ud83d\ude00\n","id":3,"who":{"first":null}}`,
	})
	got := l.load(ReadFiles, "format=json")
	wantRows(t, got,
		`{"id":1,"name":"a","ok":null,"price":1.5,"tags":["x","y"],"who":{"first":"A","n":1},"_rescued_data":null}`,
		`{"id":2,"name":null,"ok":true,"price":null,"tags":null,"who":null,"_rescued_data":null}`,
		`{"id":3,"name":"café 😀\n","ok":null,"price":null,"tags":null,"who":{"first":null,"n":null},"_rescued_data":null}`,
	)
}
