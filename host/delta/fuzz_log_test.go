package delta

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/storage"
)

// fewFiles is a store of objects in memory that can be read by name only.
type fewFiles struct {
	storage.Store
	objects map[string][]byte
}

func (s fewFiles) Open(_ context.Context, name string) (storage.Object, error) {
	data, ok := s.objects[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return timedObject{memObject{Reader: bytes.NewReader(data)}}, nil
}

func (s fewFiles) Get(_ context.Context, name string) ([]byte, error) {
	data, ok := s.objects[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

type timedObject struct{ memObject }

func (timedObject) ModTime() time.Time { return time.UnixMilli(1) }

// seedLog gives the files of a table that has every form of checkpoint and a compacted log.
func seedLog(f *testing.F) map[string][]byte {
	x := newFixture(f)
	x.history(map[string]string{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000000", "delta.checkpoint.writeStatsAsStruct": "true"}, 6)
	for _, form := range []CheckpointForm{CheckpointClassic, CheckpointV2, CheckpointV2JSON} {
		if _, err := x.table.Checkpoint(background, form); err != nil {
			f.Fatal(err)
		}
	}
	if err := x.table.CompactLog(background, 1, 5); err != nil {
		f.Fatal(err)
	}
	out := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(x.dir, logFolder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, x.dir+"/")] = data
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// FuzzHint feeds _last_checkpoint: it is a version or none, whatever it holds.
func FuzzHint(f *testing.F) {
	f.Add(seedLog(f)[lastCheckpointName])
	for _, s := range []string{"", "{}", `{"version":7}`, `{"version":-1}`, `{"version":1e3}`, `{"version":3,"checksum":"x"}`, `[[[[`, `{"version":3,"size":1,"v2Checkpoint":{"sidecarFiles":[null]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frugally(t, len(data), func() {
			if version, ok := decodeHint(data); ok && version < 0 {
				t.Errorf("version %d", version)
			}
			sum, err := jsonChecksum(data)
			coded(t, err)
			if again, err := jsonChecksum(append([]byte(" "), data...)); err == nil && again != sum {
				t.Error("white space changes the checksum")
			}
		})
	})
}

// FuzzTopOfV2Checkpoint feeds the file that names the sidecars, in both
// encodings, beside a sidecar that is there.
func FuzzTopOfV2Checkpoint(f *testing.F) {
	sidecars := map[string][]byte{}
	for name, data := range seedLog(f) {
		switch {
		case strings.HasPrefix(name, sidecarFolder):
			sidecars[name] = data
		case strings.Contains(name, ".checkpoint."):
			f.Add(data, strings.HasSuffix(name, ".json"))
		}
	}
	f.Add([]byte(`{"checkpointMetadata":{"version":1}}{"sidecar":{"path":"%"}}{"sidecar":{"path":"../../x.parquet"}}{"sidecar":{"path":"s3://b/c"}}`), true)
	f.Fuzz(func(t *testing.T, data []byte, json bool) {
		frugally(t, len(data), func() {
			name := v2CheckpointName(6, CheckpointV2)
			if json {
				name = v2CheckpointName(6, CheckpointV2JSON)
			}
			objects := map[string][]byte{name: data}
			for n, d := range sidecars {
				objects[n] = d
			}
			table := Open(fewFiles{objects: objects}, WithAllocator(memory.NewGoAllocator()))
			r := newReplay(table, nil)
			err := table.readCheckpoint(context.Background(), r, checkpointFiles{version: 6, rank: rankV2, names: []string{name}})
			coded(t, err)
			if err == nil {
				_, err = r.finish()
				coded(t, err)
			}
			_, err = table.sidecarsIn(context.Background(), name)
			coded(t, err)
		})
	})
}

// FuzzSidecar feeds a sidecar to a checkpoint that is right.
func FuzzSidecar(f *testing.F) {
	var top []byte
	var sidecar string
	for name, data := range seedLog(f) {
		switch {
		case strings.HasPrefix(name, sidecarFolder):
			sidecar = name
			f.Add(data)
			f.Add(data[:len(data)-7])
		case strings.Contains(name, ".checkpoint.") && strings.HasSuffix(name, ".json"):
			top = data
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frugally(t, len(data), func() {
			name := v2CheckpointName(6, CheckpointV2JSON)
			table := Open(fewFiles{objects: map[string][]byte{name: top, sidecar: data}}, WithAllocator(memory.NewGoAllocator()))
			r := newReplay(table, nil)
			err := table.readCheckpoint(context.Background(), r, checkpointFiles{version: 6, rank: rankV2, names: []string{name}})
			coded(t, err)
			if err == nil {
				_, err = r.finish()
				coded(t, err)
			}
		})
	})
}

// FuzzCompactedLog feeds a compacted file: its commits make up for one that cannot be used.
func FuzzCompactedLog(f *testing.F) {
	objects := map[string][]byte{}
	compacted := compactedName(1, 5)
	for name, data := range seedLog(f) {
		if !strings.Contains(name, "checkpoint") {
			objects[name] = data
		}
	}
	f.Add(objects[compacted])
	f.Add([]byte(`{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}`))
	f.Add([]byte(`{"add":{"path":"x"}}{"remove":{"path":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		frugally(t, len(data), func() {
			now := map[string][]byte{}
			for n, d := range objects {
				now[n] = d
			}
			now[compacted] = data
			table := Open(fewFiles{objects: now})
			r := newReplay(table, nil)
			seg := &segment{compacted: []compactedFile{{1, 5, compacted}}}
			err := table.eachPart(context.Background(), seg.parts(0, 6), r.apply)
			if err == nil {
				_, err = r.finish()
			}
			coded(t, err)
		})
	})
}

// FuzzStatistics feeds statistics to the scanner, beside a row whose shape it has learned.
func FuzzStatistics(f *testing.F) {
	const right = `{"numRecords":3,"minValues":{"i":-1,"s":"a"},"maxValues":{"i":7,"s":"b"},"nullCount":{"i":0,"s":1}}`
	for _, s := range []string{right, `{"numRecords":3`, `{"minValues":{"n":{"f":"NaN"},"d":"2023-02-29","dec":12.3,"t":"2024-01-01T00:00:00.123Z"}}`, `{"a":[1,{"b":[]}],"tightBounds":false}`, `{"num\u0052ecords":9}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stats string) {
		frugally(t, len(stats), func() {
			if len(stats) > 1<<12 {
				return
			}
			rows := scanAll(t, []string{right, stats, stats, right})
			if len(rows[0]) != 7 || len(rows[3]) != 7 {
				t.Errorf("a row beside changes: %v", rows)
			}
			for k, v := range rows[1] {
				if rows[2][k] != v {
					t.Errorf("%s: %q by itself, %q by its shape", k, v, rows[2][k])
				}
			}
		})
	})
}
