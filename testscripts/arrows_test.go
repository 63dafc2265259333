package testscripts

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weir-data/weir/"

// part is a folder of the repository and what it may import of ours: the parts
// of a lower rank (siblings share one, and 0 is no rank), and those it lists.
// A part covers its subpackages; the longest matching path counts.
type part struct {
	path    string
	rank    int
	imports []string
	why     string
}

// leaves are imported by every part of the host.
var leaves = []string{"host/fault", "host/failpoint", "host/relation", "abi/coltype"}

// parts is the table of allowed edges, from the bottom to the top.
var parts = []part{
	{"abi/coltype", 0, nil, "the type names are shared by host, runtime and command line; a leaf breaks no cycle"},
	{"abi", 0, []string{"abi/coltype"}, "the contract knows neither side"},
	{"runtime", 0, []string{"abi"}, "a sandbox that knew pipelines could not be lifted out, or reviewed alone"},
	{"sdk/go/embedsdk", 0, nil, "the SDK's source as data: weir init writes it out"},
	{"plugins", 0, []string{"sdk/go"}, "a plugin sees what any author sees"},

	{"host/fault", 0, nil, "leaf"},
	{"host/failpoint", 0, nil, "leaf"},
	{"host/relation", 0, nil, "leaf"},
	{"host/storage", 1, nil, "put-if-absent storage knows nothing of tables"},
	{"host/delta", 2, nil, "the Delta protocol knows nothing of pipelines and could be lifted out"},
	{"host/catalog", 3, nil, "sibling of events: neither needs the other"},
	{"host/events", 3, nil, "sibling of catalog"},
	{"host/sql", 4, nil, "the engine does not know where rows come from"},
	{"host/ingest", 5, nil, "sibling of expect"},
	{"host/expect", 5, nil, "sibling of ingest"},
	{"host/stream", 6, []string{"runtime", "abi"}, "the batch loop; steps come in through an interface"},
	{"host/cdc", 7, []string{"abi"}, "the rules of AUTO CDC and its state: stream calls them through an interface"},
	{"host/pipeline", 8, []string{"runtime", "abi"}, "the driver: the one place where the engines meet"},
	{"cli", 9, []string{"runtime", "abi", "plugins", "sdk/go/embedsdk"}, "verbs call the driver; weir plugin reads modules without one"},
	{"testscripts", 10, []string{"runtime", "abi", "plugins"}, "the tests see everything and nothing sees them"},
}

// owners says which part alone may import a module from outside, with the reason.
var owners = []struct{ prefix, part, why string }{
	{"github.com/duckdb/", "host/sql", "each package that links DuckDB costs seconds and 70 MB; one place holds its sandbox settings"},
	{"github.com/tetratelabs/wazero", "runtime", "one place decides what a module sees"},
	{"gocloud.dev", "host/storage", "what an object store is stays behind storage.Store"},
	{"github.com/aws/", "host/storage", "as gocloud.dev"},
	{"github.com/Azure/", "host/storage", "as gocloud.dev"},
	{"cloud.google.com/", "host/storage", "as gocloud.dev"},
	{"github.com/urfave/cli", "cli", "the command line is one part"},
	{"gopkg.in/yaml", "none", "the spec is read by goccy/go-yaml, which knows positions"},
}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Standard                           bool
	Error                              *struct{ Err string }
}

func goList(t *testing.T, dir string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports,Standard,Error", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", dir, err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	var all []listed
	for {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsPointDownwards(t *testing.T) {
	root := repoRoot(t)
	for _, p := range goList(t, root) {
		here := strings.TrimPrefix(p.ImportPath, module)
		owner, ok := partOf(here)
		if !ok {
			t.Errorf("%s belongs to no part: add it to the table with its reason", here)
			continue
		}
		for _, imp := range p.Imports {
			checkOutside(t, here, imp)
			target, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if !allowed(owner, here, target) {
				t.Errorf("%s imports %s: %s", here, target, owner.why)
			}
		}
	}
}

func TestSDKImportsNothingButItself(t *testing.T) {
	for _, p := range goList(t, repoRoot(t)+"/sdk/go") {
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			first, _, _ := strings.Cut(imp, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imp, module+"sdk/go") {
				t.Errorf("%s imports %s: the SDK has no dependencies", p.ImportPath, imp)
			}
		}
	}
}

func partOf(pkg string) (part, bool) {
	best := part{}
	for _, p := range parts {
		if (pkg == p.path || strings.HasPrefix(pkg, p.path+"/")) && len(p.path) > len(best.path) {
			best = p
		}
	}
	return best, best.path != ""
}

func allowed(owner part, here, target string) bool {
	if target == owner.path || strings.HasPrefix(target, owner.path+"/") {
		return true
	}
	if to, ok := partOf(target); ok && 0 < to.rank && to.rank < owner.rank {
		return true
	}
	for _, to := range slices.Concat(owner.imports, leafFor(here)) {
		if target == to || strings.HasPrefix(target, to+"/") {
			return true
		}
	}
	return false
}

// leafFor gives the leaves to the host and what stands above it; a leaf, abi,
// runtime, sdk and plugins have none of the host's.
func leafFor(here string) []string {
	if slices.Contains(leaves, here) {
		return nil
	}
	for _, top := range []string{"host/", "cli", "testscripts"} {
		if strings.HasPrefix(here, top) {
			return leaves
		}
	}
	return nil
}

func checkOutside(t *testing.T, here, imp string) {
	for _, o := range owners {
		if !strings.HasPrefix(imp, o.prefix) {
			continue
		}
		if here != o.part && !strings.HasPrefix(here, o.part+"/") && !strings.HasPrefix(here, "testscripts") {
			t.Errorf("%s imports %s, which belongs to %s: %s", here, imp, o.part, o.why)
		}
	}
}
