package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
)

var recorded = map[string]string{"delta.enableChangeDataFeed": "true"}

// feedLife makes a table with the feed on: version 1 inserts ids 1 to 3, then
// come the steps, a version each.
func feedLife(t *testing.T, properties map[string]string, steps ...func(*life)) (*lake, *life) {
	t.Helper()
	l := newLake(t)
	f := newLife(t, l, rand.New(rand.NewPCG(7, 3)), properties)
	for _, step := range steps {
		step(f)
	}
	return l, f
}

func appendOne(f *life) { f.append(1) }
func updateSome(f *life) {
	before := f.snapshot().Version()
	for f.snapshot().Version() == before {
		f.change(true)
	}
}
func deleteSome(f *life) {
	before := f.snapshot().Version()
	for f.snapshot().Version() == before {
		f.change(false)
	}
}

// versionsOf counts the rows of the target by change type and version.
func versionsOf(t *testing.T, l *lake) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, row := range l.mustRows(t, silverName) {
		if kind, rest, ok := strings.Cut(row, `"_commit_version":`); ok {
			version, _, _ := strings.Cut(rest, ",")
			_, kind, _ = strings.Cut(kind, `"_change_type":"`)
			kind, _, _ = strings.Cut(kind, `"`)
			counts[kind+"@"+version]++
		}
	}
	return counts
}

// covers A73: where a change feed begins.
func TestAChangeFeedBeginsWhereItIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		options map[string]string
		first   string // version of the oldest change
		after   bool   // rows of what is there already
	}{
		"the rows of now count as inserted": {nil, "insert@2", true},
		"a version":                         {map[string]string{"startingVersion": "0"}, "insert@1", true},
		"a time":                            {map[string]string{"startingTimestamp": "2000-01-01"}, "insert@1", true},
		"the newest version":                {map[string]string{"startingVersion": "latest"}, "insert@3", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, f := feedLife(t, recorded, appendOne)
			options := map[string]string{"readChangeFeed": "true"}
			for k, v := range c.options {
				options[k] = v
			}
			mustRun(t, l.changes(t, options))
			if rows := len(l.mustRows(t, silverName)); (rows > 0) != c.after {
				t.Fatalf("%d rows", rows)
			}
			f.append(1) // version 3, which also a stream from "latest" on has
			mustRun(t, l.changes(t, options))
			got := versionsOf(t, l)
			if got["insert@3"] != 1 || got[c.first] == 0 {
				t.Fatal(got)
			}
			if c.after {
				same(t, "rows", l.folded(t), f.rows())
			} else if len(got) != 1 {
				t.Fatal(got)
			}
		})
	}
}

// A plain stream may begin later, too.
func TestATableStreamBeginsWhereItIsTold(t *testing.T) {
	for value, want := range map[string]int{"0": 5, "2": 2, "3": 1, "latest": 1} {
		l, f := feedLife(t, nil, appendOne)
		options := map[string]string{"startingVersion": value}
		if value != "3" {
			mustRun(t, l.changes(t, options))
		}
		f.append(1)
		mustRun(t, l.changes(t, options))
		if rows := l.mustRows(t, silverName); len(rows) != want {
			t.Errorf("startingVersion %s: %v", value, rows)
		}
	}
}

// covers A73: what a stream cannot deliver any more, or never could, is named
// with what is lost; nothing of the batch is committed.
func TestLostChangesAreNamed(t *testing.T) {
	gone := func(t *testing.T, l *lake, pattern string) {
		names, err := filepath.Glob(filepath.Join(l.dir, "lake/dev/bronze/orders", pattern))
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	off := func(f *life) {
		if _, err := f.table.Commit(context.Background(), delta.Commit{Read: f.snapshot(), Properties: map[string]string{"delta.enableChangeDataFeed": "false"}}); err != nil {
			f.t.Fatal(err)
		}
	}
	on := func(f *life) {
		if _, err := f.table.Commit(context.Background(), delta.Commit{Read: f.snapshot(), Properties: recorded}); err != nil {
			f.t.Fatal(err)
		}
	}
	feed := map[string]string{"readChangeFeed": "true", "startingVersion": "0"}
	for _, c := range []struct {
		name       string
		properties map[string]string
		first      map[string]string // options of a run before the loss
		lose       func(t *testing.T, l *lake, f *life)
		options    map[string]string
		code, says string
	}{
		{"a feed that is off", nil, nil, nil, feed, "DELTA_MISSING_CHANGE_DATA", "off in version 1"},
		{"a feed that came later", nil, nil, func(_ *testing.T, _ *lake, f *life) { on(f) }, feed, "DELTA_MISSING_CHANGE_DATA", "off in version 0"},
		{"a feed with a hole", recorded, nil, func(_ *testing.T, _ *lake, f *life) { off(f); f.append(1); on(f) }, feed, "DELTA_MISSING_CHANGE_DATA", "off in version 2"},
		{"a version to come", recorded, nil, nil, map[string]string{"readChangeFeed": "true", "startingVersion": "9"}, "DELTA_VERSION_NOT_FOUND", "9"},
		{"a time to come", recorded, nil, nil, map[string]string{"readChangeFeed": "true", "startingTimestamp": "2999-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "2999"},
		{"a log that was cleaned up", map[string]string{"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1"}, feed, func(t *testing.T, l *lake, f *life) {
			f.append(1)
			f.append(1)
			gone(t, l, "_delta_log/*[0-2].json")
		}, feed, "DELTA_MISSING_FILES_UNEXPECTED_VERSION", "before version 3"},
		{"a change file that was removed", recorded, feed, func(t *testing.T, l *lake, f *life) {
			updateSome(f)
			gone(t, l, "_change_data/*")
		}, feed, "DELTA_CHANGE_DATA_FILE_NOT_FOUND", "versions 2 to 2"},
		{"a data file of the plain stream that was removed", nil, map[string]string{}, func(t *testing.T, l *lake, f *life) {
			f.append(1)
			gone(t, l, "*life-*")
		}, map[string]string{}, "DELTA_FILE_NOT_FOUND", "before the stream read it"},
		{"a stream of rows that becomes one of changes", recorded, map[string]string{}, nil, map[string]string{"readChangeFeed": "true"}, "SOURCE_CHANGED", "change feed"},
		{"a stream of changes that becomes one of rows", recorded, feed, nil, map[string]string{}, "SOURCE_CHANGED", "change feed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, f := feedLife(t, c.properties)
			if c.first != nil {
				mustRun(t, l.changes(t, c.first))
			}
			before := l.mustRows(t, silverName)
			if c.lose != nil {
				c.lose(t, l, f)
			}
			_, err := Run(context.Background(), l.changes(t, c.options), nil)
			if !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "orders") {
				t.Fatalf("%v, want %s with %q", err, c.code, c.says)
			}
			if c.name != "a feed with a hole" { // the version before the hole is delivered
				same(t, "rows", l.mustRows(t, silverName), before)
			}
		})
	}
}

// covers A73: all that a version did comes in one batch, whatever the limits
// say, and a full refresh upstream is changes like any other.
func TestAVersionIsNotCut(t *testing.T) {
	l, f := feedLife(t, recorded, updateSome, func(f *life) {
		rows := f.fresh(2)
		c := f.write(f.snapshot(), rows[:1])
		c.Add = append(c.Add, f.write(f.snapshot(), rows[1:]).Add...)
		if len(c.Add) != 2 {
			f.t.Fatal(c.Add)
		}
		if _, err := f.table.Commit(context.Background(), c); err != nil {
			f.t.Fatal(err)
		}
	}, func(f *life) {
		c := f.write(f.snapshot(), f.fresh(1))
		c.ReplaceAll, c.Parameters = true, map[string]any{fullRefreshKey: "true"}
		if _, err := f.table.Commit(context.Background(), c); err != nil {
			f.t.Fatal(err)
		}
	})
	res := mustRun(t, l.changes(t, map[string]string{"readChangeFeed": "true", "startingVersion": "0", "maxFilesPerTrigger": "1"}))
	if res.Batches != 4 {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.folded(t), f.rows())
}

// covers A73: old images that reach the target without the column that tells
// them apart are counted; with it, or filtered, they are not.
func TestOldImagesThatPassForRowsAreCounted(t *testing.T) {
	options := map[string]string{"readChangeFeed": "true", "startingVersion": "0"}
	for name, c := range map[string]struct {
		steps []Step
		want  bool
	}{
		"kept with its type":   {nil, false},
		"kept without":         {[]Step{withoutStep{}}, true},
		"filtered and without": {[]Step{withoutStep{filter: true}}, false},
	} {
		l, _ := feedLife(t, recorded, updateSome)
		flow := l.changes(t, options)
		flow.Steps = c.steps
		res := mustRun(t, flow)
		if (res.Metrics.OldImages > 0) != c.want {
			t.Errorf("%s: %+v", name, res.Metrics)
		}
	}
}

// A row of a feed is found again by the version that changed it.
func TestAQuarantinedChangeNamesItsVersion(t *testing.T) {
	l, _ := feedLife(t, recorded, deleteSome)
	flow := l.changes(t, map[string]string{"readChangeFeed": "true", "startingVersion": "0"})
	flow.Rules, flow.Steps = []expect.Rule{{Name: "none", Action: expect.Quarantine}}, []Step{allBadStep{}}
	mustRun(t, flow)
	rows := l.mustRows(t, silverName+"_quarantine")
	counts := map[string]int{}
	for _, row := range rows {
		for v := range 4 {
			if strings.Contains(row, fmt.Sprintf(`"_source":"%s@v%d"`, bronzeName, v)) && strings.Contains(row, fmt.Sprintf(`\"_commit_version\":%d`, v)) {
				counts[fmt.Sprint(v)]++
			}
		}
	}
	if counts["1"] != 3 || counts["2"] == 0 || counts["1"]+counts["2"] != len(rows) {
		t.Fatal(counts, rows)
	}
}

func TestSpellingsOfInstants(t *testing.T) {
	want := time.Date(2026, 7, 30, 6, 5, 0, 0, time.UTC)
	for _, text := range []string{"2026-07-30T06:05:00Z", "2026-07-30T08:05:00+02:00", "2026-07-30 06:05:00", "2026-07-30T06:05:00.000", "2026-07-30 08:05:00+02:00"} {
		if at, err := parseInstant(text); err != nil || !at.Equal(want) {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
	if at, err := parseInstant("yesterday"); err == nil {
		t.Error(at)
	}
}
