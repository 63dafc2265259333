package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
)

// landing DIR N [FROM] writes N order documents, one a file, numbered from FROM (0).
func cmdLanding(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: landing DIR N [FROM]")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	from := 0
	if len(args) == 3 {
		from, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	ts.Check(writeOrders(ts.MkAbs(args[0]), from, n))
}

// writeOrders writes documents like {"id":7,"amount":7.50,"city":"c1"}.
func writeOrders(dir string, from, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := from; i < from+n; i++ {
		text := fmt.Sprintf(`{"id":%d,"amount":%d.50,"city":"c%d"}`+"\n", i, i%100, i%3)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("order_%06d.json", i)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rows SQL WANT… runs a query and compares its rows, as CSV without header, with the arguments.
func cmdRows(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: rows SQL [ROW…]")
	}
	ts.Check(ts.Exec("weir", "query", args[0], "--output", "csv"))
	got := strings.Split(strings.TrimRight(ts.ReadFile("stdout"), "\n"), "\n")[1:]
	if slices.Equal(got, args[1:]) == neg {
		ts.Fatalf("%s\ngot:\n%s\nwant:\n%s", args[0], strings.Join(got, "\n"), strings.Join(args[1:], "\n"))
	}
}

// await FILE waits until a file is there: what a process in the background does takes its time.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s did not come", args[0])
}

// lines N [FILE] checks the number of lines of the last standard output, or of a file.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: lines N FILE (stdout for the last output)")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := strings.Count(ts.ReadFile(args[1]), "\n")
	if (got == want) == neg {
		ts.Fatalf("%s has %d lines", args[1], got)
	}
}

// jsonl FILE WHERE FIELD=VALUE… finds in JSON lines (stdout for the last
// output) the one line in which WHERE (FIELD=VALUE, comma-separated) holds,
// and checks its fields. A field may be a path: error.code.
func cmdJSONLines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: jsonl FILE FIELD=VALUE[,FIELD=VALUE] FIELD=VALUE…")
	}
	var found []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		if line == "" {
			continue
		}
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var v map[string]any
		if err := dec.Decode(&v); err != nil {
			ts.Fatalf("not a JSON object: %q: %v", line, err)
		}
		if !slices.ContainsFunc(strings.Split(args[1], ","), func(w string) bool { return !holds(v, w) }) {
			found = append(found, v)
		}
	}
	if neg {
		if len(found) > 0 {
			ts.Fatalf("%d lines match %s", len(found), args[1])
		}
		return
	}
	if len(found) != 1 {
		ts.Fatalf("%d lines match %s, not one", len(found), args[1])
	}
	for _, want := range args[2:] {
		if !holds(found[0], want) {
			ts.Fatalf("%s does not hold in %v", want, found[0])
		}
	}
}

func holds(v map[string]any, fieldValue string) bool {
	field, want, ok := strings.Cut(fieldValue, "=")
	if !ok {
		return false
	}
	var at any = v
	for name := range strings.SplitSeq(field, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return false
		}
		at = object[name]
	}
	return fmt.Sprint(at) == want
}

// append FILE TEXT appends TEXT, in which \n is a line's end.
func cmdAppend(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: append FILE TEXT")
	}
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o755))
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	ts.Check(err)
	_, err = f.WriteString(strings.ReplaceAll(args[1], `\n`, "\n"))
	ts.Check(err)
	ts.Check(f.Close())
}

// bucket start | bucket put KEY FILE: an S3 of the script's own, whose one
// bucket is called lake.
func cmdBucket(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case !neg && len(args) == 1 && args[0] == "start":
		s := cloudtest.StartS3()
		ts.Defer(s.Close)
		buckets.Store(ts.Getenv("WORK"), s)
		for k, v := range cloudtest.S3Env(s.URL) {
			ts.Setenv(k, v)
		}
	case !neg && len(args) == 3 && args[0] == "put":
		v, ok := buckets.Load(ts.Getenv("WORK"))
		s, is := v.(*cloudtest.Server)
		if !ok || !is {
			ts.Fatalf("bucket start comes first")
		}
		s.Put(args[1], []byte(ts.ReadFile(args[2])))
	default:
		ts.Fatalf("usage: bucket start | bucket put KEY FILE")
	}
}

// buckets are those of the running scripts, by their folder.
var buckets sync.Map
