package pipeline

import (
	"runtime"
	"testing"
)

// A table is opened once, as long as somebody holds it, so that what is known of
// its log is known to all who ask; and again when nobody does.
func TestATableIsOpenedOnce(t *testing.T) {
	p := newProject(t)
	p.write("landing/1.json", `{"id": 1}`)
	p.write("sql/a.sql", "CREATE STREAMING TABLE t AS SELECT id FROM STREAM read_files('landing', format => 'json', schema => 'id BIGINT'); CREATE STREAMING TABLE u AS SELECT id FROM STREAM(t);")
	p.completed(RunOptions{})
	pl := p.open()
	func() {
		one, err := pl.Table("bronze.t")
		if err != nil {
			t.Fatal(err)
		}
		same, err := pl.Table("dev.bronze.t")
		if err != nil || same != one || pl.tableOf(pl.graph.order[0]) != one {
			t.Errorf("the table was opened again, %v", err)
		}
		other, err := pl.Table("bronze.u")
		if err != nil || other == one {
			t.Errorf("two tables are one, %v", err)
		}
	}()
	runtime.GC()
	again, err := pl.Table("bronze.t")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := again.Snapshot(t.Context()); err != nil || s.NumFiles() != 1 {
		t.Errorf("the table cannot be read after nobody held it: %v", err)
	}
}
