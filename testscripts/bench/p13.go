package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/storage"
)

// deltaRS opens a table and lists its files with statistics as often as it is
// told, and prints what each time took, in wall-clock and processor time.
const deltaRS = `
import json, os, sys, time
import deltalake
for _ in range(int(sys.argv[2])):
    wall, cpu = time.perf_counter(), time.process_time()
    files = deltalake.DeltaTable(sys.argv[1]).get_add_actions(flatten=True)
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "rows": files.num_rows}), flush=True)
os._exit(0)  # the interpreter now and then aborts while it is torn down
`

// runP13 measures how long it takes to open a table of very many files and
// commits, and to list its files with decoded statistics.
func runP13(ctx context.Context, dir string, s settings) ([]figure, error) {
	files, commits := s.scaled(100_000), s.scaled(10_000)
	label := fmt.Sprintf("%d files, %d commits, ", files, commits)
	const peer = "delta-rs (python deltalake)"
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import deltalake").CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return []figure{{Case: label + "checkpoint", Better: "higher", Must: 0.7, Aim: 1.5, Peer: peer, Skipped: "deltalake is not installed for python3: " + lines[len(lines)-1]}}, nil
	}
	var out []figure
	for _, c := range []struct {
		name      string
		form      delta.CheckpointForm // "" leaves the log without a checkpoint
		must, aim float64
	}{{"checkpoint", delta.CheckpointClassic, 0.7, 1.5}, {"checkpoint V2", delta.CheckpointV2, 0.7, 1.5}, {"commits alone", "", 0, 0}} {
		table := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
		if err := writeLog(ctx, table, files, commits, c.form); err != nil {
			return nil, err
		}
		run := func() error { return openAndList(ctx, table, int64(files)) }
		a, b, err := raceDeltaRS(ctx, table, s.repeats, files, side{run: run})
		if err != nil {
			return nil, err
		}
		if err := s.profiled("p13-"+filepath.Base(table), run); err != nil {
			return nil, err
		}
		out = append(out, figure{Case: label + c.name, Must: c.must, Aim: c.aim, Peer: peer}.faster(a, b))
	}
	return out, nil
}

func openAndList(ctx context.Context, dir string, want int64) error {
	store, err := storage.OpenDir(dir)
	if err != nil {
		return err
	}
	s, err := delta.Open(store).Snapshot(ctx)
	if err != nil {
		return err
	}
	r, err := s.FileStats(ctx)
	if err != nil {
		return err
	}
	defer r.Release()
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if rows != want {
		return fmt.Errorf("%d files are listed, not %d", rows, want)
	}
	return r.Err()
}

// raceDeltaRS runs both sides in turn. The peer works three times in each of
// its processes, so that what it loads at first does not count.
func raceDeltaRS(ctx context.Context, table string, repeats, files int, ours side) (a, b cost, err error) {
	for i := range max(2, repeats) {
		for range 3 {
			got, err := ours.measure()
			if err != nil {
				return a, b, err
			}
			if i == 0 && a.wall == 0 {
				a = got
			}
			a.wall, a.cpu = min(a.wall, got.wall), min(a.cpu, got.cpu)
		}
		out, err := exec.CommandContext(ctx, "python3", "-c", deltaRS, table, "3").Output()
		if err != nil {
			return a, b, fmt.Errorf("delta-rs: %w", err)
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		for range 3 {
			var got struct {
				Wall, CPU float64
				Rows      int
			}
			if err := dec.Decode(&got); err != nil {
				return a, b, fmt.Errorf("delta-rs: %w", err)
			}
			if got.Rows != files {
				return a, b, fmt.Errorf("delta-rs lists %d files, not %d", got.Rows, files)
			}
			if b.wall == 0 {
				b = cost{got.Wall, got.CPU}
			}
			b.wall, b.cpu = min(b.wall, got.Wall), min(b.cpu, got.CPU)
		}
	}
	return a, b, nil
}

const logSchema = `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},{"name":"customer","type":"string","nullable":true,"metadata":{}},` +
	`{"name":"amount","type":"decimal(18,2)","nullable":true,"metadata":{}},{"name":"day","type":"date","nullable":true,"metadata":{}},` +
	`{"name":"score","type":"double","nullable":true,"metadata":{}},{"name":"at","type":"timestamp","nullable":true,"metadata":{}}]}`

// writeLog writes the log of a table by hand, its files exist by name only. The
// checkpoint comes ten commits before the end.
func writeLog(ctx context.Context, dir string, files, commits int, form delta.CheckpointForm) error {
	store, err := storage.OpenDir(dir, storage.NoSync)
	if err != nil {
		return err
	}
	quote := func(v any) string {
		text, _ := json.Marshal(v) // strings and maps of strings
		return string(text)
	}
	properties := map[string]string{"delta.enableExpiredLogCleanup": "false"}
	protocol := `{"minReaderVersion":1,"minWriterVersion":2}`
	if form == delta.CheckpointV2 {
		properties["delta.checkpointPolicy"] = "v2"
		protocol = `{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint"],"writerFeatures":["v2Checkpoint"]}`
	}
	file := 0
	for v := range commits {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"commitInfo":{"timestamp":%d,"operation":"WRITE","operationParameters":{},"isBlindAppend":true}}`+"\n", 1_700_000_000_000+v)
		if v == 0 {
			fmt.Fprintf(&b, `{"protocol":%s}`+"\n", protocol)
			fmt.Fprintf(&b, `{"metaData":{"id":"p13","format":{"provider":"parquet","options":{}},"schemaString":%s,"partitionColumns":[],"configuration":%s}}`+"\n", quote(logSchema), quote(properties))
		}
		for ; file < (v+1)*files/commits; file++ {
			h := uint64(file+1) * 0x9E3779B97F4A7C15
			stats := fmt.Sprintf(`{"numRecords":%d,"minValues":{"id":%d,"customer":"customer-%06d","amount":%d.%02d,"day":"2024-%02d-%02d","score":%d.5,"at":"2024-01-01T00:00:%02d.%03dZ"},`+
				`"maxValues":{"id":%d,"customer":"customer-%06d","amount":%d.%02d,"day":"2024-12-%02d","score":%d.25,"at":"2024-06-01T10:00:%02d.%03dZ"},"nullCount":{"id":0,"customer":%d,"amount":0,"day":0,"score":%d,"at":0}}`,
				1000+h%1000, file*1000, h%1000000, h>>50, h%100, 1+h%12, 1+h%28, h>>54, h%60, h%1000,
				file*1000+999, h>>44, h>>49, h%100, 1+h%28, h>>50, h%60, h%1000, h%7, h%3)
			fmt.Fprintf(&b, `{"add":{"path":"part-00000-%08x-%04x-4%03x-9%03x-%012x-c000.zstd.parquet","partitionValues":{},"size":%d,"modificationTime":%d,"dataChange":true,"stats":%s}}`+"\n",
				h>>32, h>>16&0xffff, h>>4&0xfff, h&0xfff, h>>12&0xffffffffffff, 100_000+h%100_000, 1_700_000_000_000+file, quote(stats))
		}
		if err := store.Put(ctx, fmt.Sprintf("_delta_log/%020d.json", v), b.Bytes()); err != nil {
			return err
		}
		if form != "" && v == max(0, commits-11) {
			if _, err := delta.Open(store).Checkpoint(ctx, form); err != nil {
				return err
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", commits-1))); err != nil {
		return err
	}
	return nil
}
