package stream

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/weir-data/weir/host/delta"
)

// A task is a value that another machine could run: nothing of it is lost on
// the way, and the names of its files depend on nothing else.
func TestATaskCanBeSent(t *testing.T) {
	value, at := "x", time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC)
	for _, in := range []Input{
		{Files: []InputFile{{"/l/a.json", 10, 5}}},
		{Table: &TableInput{TableVersion{"id", 3}, []delta.AddFile{{Path: "a", Size: 4, DataChange: true, PartitionValues: map[string]*string{"p": &value, "q": nil}}}, nil}},
		{Table: &TableInput{TableVersion{"id", 3}, []delta.AddFile{{Path: "a"}}, &FeedInput{From: 3, To: 3, Time: &at}}},
		{Table: &TableInput{TableVersion{"id", 9}, nil, &FeedInput{From: 4, To: 9, Files: 2, Bytes: 7}}},
	} {
		task := &Task{Dataset: "c.s.t", Flow: "t", Pipeline: "p", UpdateID: "u", Generation: 2, Batch: 7, Index: 1, Attempt: 3,
			Timestamp: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), FullRefresh: true, SchemaVersion: 4, Input: in,
			Side: map[string]TableVersion{"r": {"id", 9}}}
		text, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		var got Task
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(&got, task) {
			t.Errorf("%v: got %+v, want %+v", err, got, task)
		}
		if got.Name() != task.Name() || got.appID() != "p/c.s.t/t/2" {
			t.Error(got.Name(), got.appID())
		}
	}
}

func TestSharesAreContiguousAndDependOnBytesOnly(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  [][2]int
	}{
		{nil, nil},
		{[]int64{5}, [][2]int{{0, 1}}},
		{[]int64{100, 1, 1}, [][2]int{{0, 1}, {1, 3}}},
		{[]int64{4, 4, 4, 4}, [][2]int{{0, 2}, {2, 4}}},
		{[]int64{-1, -1, 10, 1}, [][2]int{{0, 3}, {3, 4}}},
	} {
		if got := splitBytes(len(c.sizes), 10, func(i int) int64 { return c.sizes[i] }); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.sizes, got, c.want)
		}
	}
}

func TestRefusedRowsAreFoundInTheirFiles(t *testing.T) {
	in := Input{Files: []InputFile{{Path: "a"}, {Path: "empty"}, {Path: "b"}, {Path: "c"}}}
	rows := func(ordinals ...int64) []refusal {
		var out []refusal
		for _, o := range ordinals {
			out = append(out, refusal{row: o})
		}
		return out
	}
	parts := shareOf(in, []int64{0, 5, 5, 9}, rows(0, 4, 4, 5, 12))
	want := []rereading{
		{Input{Files: in.Files[0:1]}, 0, rows(0, 4, 4)},
		{Input{Files: in.Files[2:3]}, 5, rows(5)},
		{Input{Files: in.Files[3:4]}, 9, rows(12)},
	}
	if !reflect.DeepEqual(parts, want) {
		t.Errorf("%+v", parts)
	}
	if parts := shareOf(in, nil, rows(3)); len(parts) != 1 || len(parts[0].input.Files) != 4 {
		t.Errorf("%+v", parts)
	}
}
