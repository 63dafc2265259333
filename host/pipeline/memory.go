package pipeline

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

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

// budget is how the memory of one process is shared: the SQL engine has a
// share of its own, which it spills beyond; Arrow, the guests' memories and
// everything else live on Go's heap. What is left is for what neither counts.
type budget struct {
	total int64 // 0 when nothing is known of the machine
}

// taskMemory is what a running task needs of the heap: its pieces of input,
// its batches, the memory of its guest and the file it encodes.
const taskMemory = 96 << 20

func (b budget) sql() int64  { return b.total / 2 }
func (b budget) heap() int64 { return b.total * 2 / 5 }

// tasks bounds how many tasks run at once.
func (b budget) tasks(wanted int) int {
	if b.total == 0 {
		return wanted
	}
	return max(1, min(wanted, int(b.heap()/taskMemory)))
}

// changes is about what the changes of one AUTO CDC flow may take of the heap
// before they are spilled, 0 for the default.
func (b budget) changes() int64 {
	if b.total == 0 {
		return 0
	}
	return max(16<<20, min(b.heap()/8, 256<<20))
}

// sqlLimit is the engine's share in its own words, "" for its default.
func (b budget) sqlLimit() string {
	if b.total == 0 {
		return ""
	}
	return fmt.Sprintf("%dB", b.sql())
}

// text is the whole budget for people, "" when there is none.
func (b budget) text() string {
	if b.total == 0 {
		return ""
	}
	return fmt.Sprintf("%dMiB", b.total>>20)
}

// findBudget takes the limit of the command, else that of the spec, else four
// fifths of the machine.
func findBudget(command, spec int64) budget {
	return budget{cmp.Or(command, spec, machineMemory("/")/5*4)}
}

// apply makes Go collect garbage before its heap outgrows its share. A limit
// that the environment has set lower stays.
func (b budget) apply() {
	if b.total > 0 && debug.SetMemoryLimit(-1) > b.heap() {
		debug.SetMemoryLimit(b.heap())
	}
}

// machineMemory gives what the process may use: the limit of its control
// group, else the machine's memory; 0 when neither can be told. root is / but
// in tests.
func machineMemory(root string) int64 {
	total := int64(0)
	if text, err := os.ReadFile(path.Join(root, "proc/meminfo")); err == nil {
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
				if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					total = kib << 10
				}
			}
		}
	}
	for _, limit := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(path.Join(root, limit))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n >= minMemoryLimit && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}
