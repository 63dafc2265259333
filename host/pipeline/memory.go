package pipeline

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/runtime/plugin"
)

// minMemoryLimit is the least an update can work with.
const minMemoryLimit = 128 << 20

// ParseMemoryLimit reads an amount of memory, such as 2GiB.
func ParseMemoryLimit(text string) (int64, error) {
	n, ok := plugin.ParseSize(text)
	if !ok {
		return 0, fault.New("INVALID_MEMORY_LIMIT", "%q is no amount of memory", text).WithHint("Write it as in 2GiB")
	}
	if n < minMemoryLimit {
		return 0, fault.New("INVALID_MEMORY_LIMIT", "a memory limit of %s cannot be used", text).WithHint("Use 128MiB or more")
	}
	return n, nil
}

func readMemoryLimit(f *yamlFile, n ast.Node) (int64, error) {
	text := n.GetToken().Value
	if _, ok := n.(*ast.IntegerNode); !ok {
		var err error
		if text, err = f.requiredText(n, "memory_limit"); err != nil {
			return 0, err
		}
	}
	limit, err := ParseMemoryLimit(text)
	if err != nil {
		return 0, fault.Place(err, "INVALID_MEMORY_LIMIT", f.errAt(n, "").Where)
	}
	return limit, nil
}
