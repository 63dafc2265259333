package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// What a killed process was writing is swept when it is old, and nothing else is.
func TestFilesInTheMakingOfDeadProcessesAreSwept(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	d, err := storage.OpenDir(dir, storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"t/a", "t/_log/b", "other/c", "t/young"} {
		w, err := d.Create(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("x"))
		defer func() { _ = w.Abort() }()
	}
	for _, pattern := range []string{"t/.tmp-a-*", "t/_log/.tmp-*", "other/.tmp-*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		if err := os.Chtimes(found[0], old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Put(ctx, "t/whole", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "t/whole"), old, old); err != nil {
		t.Fatal(err)
	}
	sweep := func(s storage.Store, dry bool) (folders []string) {
		err := storage.Sweep(ctx, s, time.Now().Add(-time.Hour), dry, func(i storage.Info) error {
			folders = append(folders, filepath.Dir(i.Name))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(folders)
		return folders
	}
	table := storage.Sub(d, "t")
	for _, dry := range []bool{true, false} {
		if got := sweep(table, dry); !slices.Equal(got, []string{".", "_log"}) {
			t.Errorf("dry %v: %v", dry, got)
		}
	}
	if got := sweep(d, false); !slices.Equal(got, []string{"other"}) {
		t.Errorf("the rest: %v", got)
	}
	if got := sweep(d, false); len(got) > 0 {
		t.Errorf("again: %v", got)
	}
	for _, name := range []string{"t/whole"} {
		if _, err := d.Stat(ctx, name); err != nil {
			t.Error(err)
		}
	}
	young, err := filepath.Glob(filepath.Join(dir, "t/.tmp-young-*"))
	if err != nil || len(young) != 1 {
		t.Errorf("%v, %v", young, err)
	}
	if err := storage.Sweep(ctx, nil, time.Now(), false, nil); err != nil {
		t.Error(err)
	}
}
