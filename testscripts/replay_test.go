package testscripts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// covers A1
//
// TestUndoneBatchIsWrittenByteEqual undoes the last batch of each table (its
// Delta commit, its commit entry and its data files) and runs again: the data
// files have the same names and bytes, also those of a plugin that ranges over
// a map and reads the clock and the random source.
func TestUndoneBatchIsWrittenByteEqual(t *testing.T) {
	dir := t.TempDir()
	crashProject(t, dir)
	mustRun(t, dir, "run")
	lake := filepath.Join(dir, "lake")
	for _, table := range []string{"bronze/orders", "silver/orders", "silver/shuffled"} {
		t.Run(table, func(t *testing.T) {
			path := filepath.Join(lake, "dev", table)
			before := undoLastCommit(t, lake, path, table)
			if len(before) == 0 {
				t.Fatal("the last commit added no file: it proves nothing")
			}
			// Those that read the table would see that it was made again.
			mustRun(t, dir, "run", "--refresh", "dev."+strings.ReplaceAll(table, "/", "."))
			for name, want := range before {
				got, err := os.ReadFile(name)
				if err != nil {
					t.Errorf("the replay wrote no %s", filepath.Base(name))
				} else if !bytes.Equal(got, want) {
					t.Errorf("%s differs: %d bytes, not %d", filepath.Base(name), len(got), len(want))
				}
			}
		})
	}
}

// undoLastCommit removes the table's last version with its data files, and the
// last commit entry of its flow. It gives the files by path.
func undoLastCommit(t *testing.T, lake, table, name string) map[string][]byte {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(table, "_delta_log", "*.json"))
	if err != nil || len(logs) == 0 {
		t.Fatal(err, "no log")
	}
	slices.Sort(logs)
	last := logs[len(logs)-1]
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	// A checkpoint of the version would still hold it.
	checkpoints, err := filepath.Glob(strings.TrimSuffix(last, ".json") + ".checkpoint*")
	if err != nil {
		t.Fatal(err)
	}
	if len(checkpoints) > 0 {
		t.Fatal("the last version has a checkpoint; change the number of files of crashProject")
	}
	files := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		var action struct {
			Add *struct{ Path string }
		}
		if err := json.Unmarshal([]byte(line), &action); err != nil {
			t.Fatal(err)
		}
		if action.Add == nil {
			continue
		}
		path := filepath.Join(table, filepath.FromSlash(action.Add.Path))
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(last); err != nil {
		t.Fatal(err)
	}
	flow := "dev." + strings.ReplaceAll(name, "/", ".")
	entries, err := filepath.Glob(filepath.Join(lake, "_weir", "*", "checkpoints", flow, "*", "*", "commits", "*"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("no commit entries of %s: %v", flow, err)
	}
	slices.Sort(entries)
	if err := os.Remove(entries[len(entries)-1]); err != nil {
		t.Fatal(err)
	}
	return files
}
