package stream

import (
	"time"
)

// offsetEntry is entry N of the offset log: everything batch N reads that
// could be otherwise another time. It is written before any work.
type offsetEntry struct {
	Format    int       `json:"format"`
	Batch     int64     `json:"batch"`
	Timestamp time.Time `json:"timestamp"`
	UpdateID  string    `json:"update_id"`
	// TaskBytes is how much input a task takes; it is recorded since the cut
	// into tasks is the cut into data files.
	TaskBytes int64 `json:"task_bytes"`
	// SchemaVersion is the version known when the batch was planned, for
	// people. The batch is read with the newest one made at or before it.
	SchemaVersion *int                    `json:"schema_version,omitempty"`
	Source        sourceOffset            `json:"source"`
	Side          map[string]TableVersion `json:"side,omitempty"`
}

// defaultTaskBytes is the input of one task: enough for a data file of the
// usual size, and for a handful of tasks in a large batch.
const defaultTaskBytes = 256 << 20

// sourceOffset is what a batch reads of its source; Kind says which of the two.
type sourceOffset struct {
	Kind  string       `json:"kind"`
	Files []InputFile  `json:"files,omitempty"`
	Table *tableOffset `json:"table,omitempty"`
}

// The kinds of offsets.
const (
	filesKind = "files"
	deltaKind = "delta"
)

// InputFile is a file of a batch.
type InputFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// ModTimeMicros is microseconds since 1970.
	ModTimeMicros int64 `json:"mtime_us"`
}

// tableOffset is a range of a Delta table's files, End excluded.
type tableOffset struct {
	TableID string `json:"table_id"`
	// Feed says that the stream reads the change data feed; then End stands
	// between versions, or within the snapshot that it begins with.
	Feed bool `json:"feed,omitempty"`
	// SnapshotTime is the time of the version whose rows a change feed begins
	// with, in the offsets that start within them.
	SnapshotTime *time.Time    `json:"snapshot_time,omitempty"`
	Start        tablePosition `json:"start"`
	End          tablePosition `json:"end"`
}

// tablePosition stands before file Index of what a version added; when
// Snapshot is set, of all files that the version holds, by path.
type tablePosition struct {
	Version  int64 `json:"version"`
	Index    int   `json:"index"`
	Snapshot bool  `json:"snapshot,omitempty"`
}

// size counts the files and bytes of an offset; bytes are known for files only.
func (o *sourceOffset) size() (files int, bytes int64) {
	for _, f := range o.Files {
		bytes += max(f.Size, 0)
	}
	return len(o.Files), bytes
}

// splitBytes cuts n items into contiguous shares of about limit bytes each. A
// share holds at least one item; the cut depends on nothing else.
func splitBytes(n int, limit int64, size func(int) int64) [][2]int {
	var shares [][2]int
	start, sum := 0, int64(0)
	for i := range n {
		s := max(size(i), 0)
		if i > start && sum+s > limit {
			shares = append(shares, [2]int{start, i})
			start, sum = i, 0
		}
		sum += s
	}
	if start < n {
		shares = append(shares, [2]int{start, n})
	}
	return shares
}
