package stream

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A batch whose commit is undone and that runs again gives the same files,
// byte by byte: of one task or many, with rows refused or a column added.
func TestReplayGivesEqualBytes(t *testing.T) {
	for _, taskBytes := range []int64{0, 1} {
		t.Run(fmt.Sprint("task bytes ", taskBytes), func(t *testing.T) {
			l := newLake(t)
			l.mustDrop(t, "1.json", `{"id":1}`)
			mustRun(t, l.mustBronze(t))
			for i := 2; i < 5; i++ {
				l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf("{\"id\":%d,\"name\":\"n\"}\n{\"id\":-%d}\n", i, i))
			}
			f := l.mustBronze(t)
			f.TaskBytes = taskBytes
			mustRun(t, f)
			before := dataFiles(t, l)
			rows, refused := l.mustRows(t, bronzeName), l.mustRows(t, bronzeName+"_quarantine")
			for _, p := range []string{
				"dev/bronze/orders/_delta_log/00000000000000000001.json",
				"dev/bronze/orders_quarantine/_delta_log/00000000000000000000.json",
				"_weir/dwh/checkpoints/" + bronzeName + "/orders/0/" + entryPath("commits", 1),
			} {
				if err := os.Remove(filepath.Join(l.dir, "lake", p)); err != nil {
					t.Fatal(err)
				}
			}
			for name := range before {
				if strings.Contains(name, "-1-") { // of batch 1
					if err := os.WriteFile(filepath.Join(l.dir, "lake", name), []byte("overwritten"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			f = l.mustBronze(t)
			f.Parallel = 3
			if res := mustRun(t, f); res.Batches != 1 || res.Recovered != 0 {
				t.Fatalf("%+v", res)
			}
			after := dataFiles(t, l)
			if len(after) != len(before) {
				t.Fatalf("%d files, then %d", len(before), len(after))
			}
			for name, data := range before {
				if !bytes.Equal(data, after[name]) {
					t.Errorf("%s has other bytes", name)
				}
			}
			same(t, "rows", l.mustRows(t, bronzeName), rows)
			same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine"), refused)
		})
	}
}

func dataFiles(t *testing.T, l *lake) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := filepath.Join(l.dir, "lake")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".parquet") || strings.Contains(p, "_delta_log") {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		files[rel] = data
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// The runs of file lists and the entries they are made of say the same.
func TestCompactedFileStatesAreThoseOfTheEntries(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	var f *Flow
	for i := range 35 {
		l.mustDrop(t, fmt.Sprintf("%02d.json", (i*17)%35), fmt.Sprintf(`{"id":%d}`, i))
		f = l.mustBronze(t)
		mustRun(t, f)
	}
	states := l.mustStates(t, f)
	if len(states) != 35 {
		t.Fatal(len(states))
	}
	files := filepath.Join(l.dir, "lake/_weir/dwh/checkpoints", bronzeName, "orders/0/files")
	runs, err := os.ReadDir(files)
	if err != nil || len(runs) != 2 { // 0–19 and 20–29
		t.Fatal(runs, err)
	}
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	same(t, "states without the runs", l.mustStates(t, f), states)
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 0 {
		t.Fatalf("%+v", res)
	}
}
