package writers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
)

const childEnv = "WEIR_WRITERS_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const processes = 8

// vectors lets writers delete rows within one file side by side.
var vectors = map[string]string{"delta.enableDeletionVectors": "true"}

func steps(t *testing.T, usual int) int {
	if text := os.Getenv("WEIR_SOAK_COMMITS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

func TestManyProcessesWriteOneTable(t *testing.T) {
	n := steps(t, 12)
	t.Run("local disk", func(t *testing.T) {
		compete(t, filepath.Join(t.TempDir(), "table"), vectors, n, nil)
	})
	t.Run("local disk, files written anew", func(t *testing.T) {
		compete(t, filepath.Join(t.TempDir(), "table"), nil, min(n, 40), nil)
	})
	t.Run("s3", func(t *testing.T) {
		cloudtest.S3(t)
		compete(t, "s3://lake/table", vectors, n, nil)
	})
}

// delta-rs is one of the writers, on disk and, with its own client, on S3.
func TestDeltaLakeIsOneOfTheWriters(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import deltalake, pyarrow").Run() != nil {
		t.Skip("the Python packages deltalake and pyarrow are not installed")
	}
	n := steps(t, 8)
	for name, properties := range map[string]map[string]string{"vectors": vectors, "files written anew": nil} {
		t.Run("local disk, "+name, func(t *testing.T) {
			compete(t, filepath.Join(t.TempDir(), "table"), properties, n, []string{python, "delta_rs.py"})
		})
		t.Run("s3, "+name, func(t *testing.T) {
			cloudtest.S3(t)
			compete(t, "s3://lake/table", properties, n, []string{python, "delta_rs.py"})
		})
	}
}

// compete lets the processes write and holds the table against what they say
// they did. With other, the first of them is that program.
func compete(t *testing.T, place string, properties map[string]string, steps int, other []string) {
	store, closing, err := openStore(place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closing(); err != nil {
			t.Error(err)
		}
	}()
	table := delta.Open(store)
	first := create(t, table, properties, steps)
	began := time.Now()
	deeds := make([][]deed, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", childEnv, i, steps, place))
			if i == 0 && other != nil {
				cmd = exec.Command(other[0], append(other[1:], place, fmt.Sprint(i), fmt.Sprint(steps))...)
			}
			var err error
			if deeds[i], err = run(cmd); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	t.Logf("%d commits of %d processes in %v", processes*steps, processes, time.Since(began).Round(time.Millisecond))
	check(t, table, first, slices.Concat(deeds...), steps)
}

// run reads the deeds of a process.
func run(cmd *exec.Cmd) (deeds []deed, err error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var d deed
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return nil, fmt.Errorf("%w in %q", err, lines.Bytes())
		}
		deeds = append(deeds, d)
	}
	return deeds, nil
}

// create makes the table with the rows that are there to be deleted.
func create(t *testing.T, table *delta.Table, properties map[string]string, steps int) map[int64]bool {
	t.Helper()
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]string{}
	}
	if _, err := table.Commit(ctx, delta.Commit{Schema: schema, Operation: "CREATE TABLE", Properties: properties}); err != nil {
		t.Fatal(err)
	}
	s, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var own, all []int64
	for step := range steps {
		for w := range processes {
			own = append(own, poolRow(w, step))
		}
		all = append(all, contestedRow(step))
	}
	var files []delta.AddFile
	for name, ids := range map[string][]int64{"own": own, "contested": all} {
		slices.Sort(ids)
		f, err := dataFiles(table, s, name, ids)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f...)
	}
	if _, err := table.Commit(ctx, delta.Commit{Read: s, Operation: "WRITE", Add: files}); err != nil {
		t.Fatal(err)
	}
	rows := map[int64]bool{}
	for _, id := range slices.Concat(own, all) {
		rows[id] = true
	}
	return rows
}

// check holds the table against the model.
func check(t *testing.T, table *delta.Table, rows map[int64]bool, deeds []deed, steps int) {
	t.Helper()
	s, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const before = 2 // the creation and the first rows
	if want := int64(before + processes*steps - 1); s.Version() != want || len(deeds) != processes*steps {
		t.Errorf("version %d and %d commits, want %d", s.Version(), len(deeds), want)
	}
	// Every version is one commit's, without a gap.
	told := 0
	byVersion := map[int64]deed{}
	for _, d := range deeds {
		if d.Version < 0 {
			continue
		}
		if twice, ok := byVersion[d.Version]; ok {
			t.Errorf("writers %d and %d both say that version %d is theirs", d.Writer, twice.Writer, d.Version)
		}
		byVersion[d.Version] = d
		told++
	}
	versions := int64(-1)
	for e, err := range table.Log(ctx, 0, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if versions++; e.Version != versions {
			t.Fatalf("version %d follows %d", e.Version, versions-1)
		}
	}
	if versions != s.Version() {
		t.Errorf("the log ends at %d, the table at %d", versions, s.Version())
	}
	// The rows of a version are those that the commits up to it leave.
	complete := told == len(deeds)
	model := maps.Clone(rows)
	for v := int64(before); v <= s.Version() && complete; v++ {
		d := byVersion[v]
		apply(t, model, d)
		if v%17 == 0 {
			compare(t, table, v, model)
		}
	}
	model = maps.Clone(rows)
	for _, d := range deeds {
		for _, id := range d.Added {
			model[id] = true
		}
	}
	for _, d := range deeds {
		apply(t, model, deed{Writer: d.Writer, Version: d.Version, Deleted: d.Deleted})
	}
	compare(t, table, s.Version(), model)
	for step := 3; step < steps; step += 4 {
		if model[contestedRow(step)] {
			t.Errorf("nobody deleted the row that all wanted at step %d", step)
		}
	}
	report, err := table.Check(ctx, delta.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Problems) > 0 {
		t.Errorf("fsck: %+v", report.Problems)
	}
}

// apply makes a deed in the model: a row can be added once and deleted once.
func apply(t *testing.T, model map[int64]bool, d deed) {
	t.Helper()
	for _, id := range d.Added {
		if model[id] {
			t.Errorf("version %d adds row %d again", d.Version, id)
		}
		model[id] = true
	}
	for _, id := range d.Deleted {
		if !model[id] {
			t.Errorf("version %d of writer %d deletes row %d, which was not there", d.Version, d.Writer, id)
		}
		delete(model, id)
	}
}

func compare(t *testing.T, table *delta.Table, version int64, model map[int64]bool) {
	t.Helper()
	s, err := table.SnapshotAt(ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	err = scanIDs(s, delta.ScanOptions{}, func(id, _ int64) {
		if seen[id] {
			err = errors.Join(err, fmt.Errorf("row %d is there twice", id))
		}
		seen[id] = true
	})
	if err != nil {
		t.Error(err)
	}
	if !maps.Equal(seen, model) {
		t.Errorf("version %d has %d rows, the model %d", version, len(seen), len(model))
	}
}
