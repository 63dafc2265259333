package state

import (
	"os"
	"regexp"
	"testing"
)

// The manifest in docs/formats.md is one that this code reads and writes, byte for byte.
func TestTheManifestIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("<!-- example: state-manifest -->\n```json\n(.*\n)```").FindSubmatch(doc)
	if m == nil {
		t.Fatal("there is no example")
	}
	manifest, err := decodeManifest(m[1], 7)
	if err != nil {
		t.Fatal(err)
	}
	again, err := encodeManifest(manifest)
	if err != nil || string(again) != string(m[1]) {
		t.Errorf("it is written as\n%s", again)
	}
	x, ok := decodeIndex(manifest.Runs[0].Index, manifest.Runs[0])
	if !ok || len(x.blocks) != 1 || x.blocks[0].rows != 2 || string(x.encode()) != string(manifest.Runs[0].Index) {
		t.Errorf("its index says %+v", x)
	}
}
