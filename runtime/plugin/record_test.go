package plugin

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

var update = flag.Bool("update", false, "record what the Go SDK writes as golden vectors in abi/testdata/ipc/go")

// TestRecordGoOutput records what a guest of the Go SDK hands to output_write
// for each type. The vectors feed the tests of runtime/wire, its mutants too.
func TestRecordGoOutput(t *testing.T) {
	if !*update {
		t.Skip("records golden vectors, with -update only")
	}
	const dir = "../../abi/testdata/ipc/go"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var written []byte
	var last *instance // the call that learns the schema comes first, in another instance
	for i := range weirImports {
		if f := &weirImports[i]; f.name == "output_write" {
			original := f.run
			f.run = func(in *instance, m api.Module, s []uint64) {
				if in != last {
					last, written = in, nil
				}
				written = append(written, in.memory(m, "output_write", s[1], s[2])...)
				original(in, m, s)
			}
			defer func() { f.run = original }()
		}
	}
	m := load(t, newEngine(t, Options{CacheDir: codeDir}), buildGo(t, "./testdata/go/conformance"), nil)
	for _, c := range conformanceCases(t) {
		name, ok := strings.CutPrefix(c.Name, "copies ")
		if !ok {
			continue
		}
		// as one batch, like the vectors
		c.Inputs[0].Batches = c.Inputs[0].Batches[:0]
		c.Inputs[0].Batches = append(c.Inputs[0].Batches, c.Output.Rows)
		written = nil
		c.run(t, m)
		slug := strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToLower(name)), "_")
		if err := os.WriteFile(filepath.Join(dir, slug+".arrows"), written, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
