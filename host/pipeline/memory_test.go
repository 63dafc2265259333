package pipeline

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheBudgetIsThatOfTheControlGroupOrTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, 0},
		"machine":       {map[string]string{"proc/meminfo": "MemTotal:        8000000 kB\nMemFree: 1 kB\n"}, 8000000 << 10},
		"group":         {map[string]string{"proc/meminfo": "MemTotal: 8000000 kB\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"no limit":      {map[string]string{"proc/meminfo": "MemTotal: 8000000 kB\n", "sys/fs/cgroup/memory.max": "max\n"}, 8000000 << 10},
		"old group":     {map[string]string{"proc/meminfo": "MemTotal: 8000000 kB\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8000000 << 10},
		"nonsense":      {map[string]string{"proc/meminfo": "MemTotal: much kB\n", "sys/fs/cgroup/memory.max": "1\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := machineMemory(root); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}

// One budget covers engine and heap, and few tasks run at once when it is small.
func TestTheSharesOfABudgetFitIntoIt(t *testing.T) {
	for total, tasks := range map[int64]int{minMemoryLimit: 1, 512 << 20: 2, 1 << 30: 4, 64 << 30: 16} {
		b := findBudget(total, 1)
		if b.sql()+b.heap() > total || b.sql()+b.heap() < total*4/5 {
			t.Errorf("%d: %d for the engine, %d for the heap", total, b.sql(), b.heap())
		}
		if got := b.tasks(16); got != tasks {
			t.Errorf("%d: %d tasks, not %d", total, got, tasks)
		}
	}
	if b := (budget{}); b.tasks(7) != 7 || b.sqlLimit() != "" {
		t.Errorf("an unknown machine limits nothing: %d, %q", b.tasks(7), b.sqlLimit())
	}
	if got := findBudget(0, 300<<20); got.total != 300<<20 || got.sqlLimit() != "157286400B" {
		t.Errorf("%+v, %q", got, got.sqlLimit())
	}
}
