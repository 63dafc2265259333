package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// segment is what a listing of the log tells: the commits, and the
// checkpoints from which a replay can start.
type segment struct {
	commits     []int64           // ascending
	times       []int64           // of the commits' files in milliseconds, where the listing asked for them
	checkpoints []checkpointFiles // newest first
	compacted   []compactedFile   // ascending by their first version
}

// checkpointFiles is one complete checkpoint. Several of one version hold the same state.
type checkpointFiles struct {
	version int64
	rank    int // preference among those of one version, lowest first
	names   []string
}

const (
	rankClassic = iota
	rankV2
	rankMultipart
)

func commitName(version int64) string { return fmt.Sprintf("%s/%020d.json", logFolder, version) }

func checkpointName(version int64) string {
	return fmt.Sprintf("%s/%020d.checkpoint.parquet", logFolder, version)
}

// list reads the names of the log from version from on.
func (t *Table) list(ctx context.Context, from int64) (*segment, error) {
	opt := storage.ListOptions{NamesOnly: true}
	if from > 0 {
		opt.After = fmt.Sprintf("%s/%020d", logFolder, from)
	}
	return t.listFrom(ctx, opt)
}

func (t *Table) listFrom(ctx context.Context, opt storage.ListOptions) (*segment, error) {
	seg := &segment{}
	parts := map[string]*checkpointFiles{}
	for info, err := range t.store.List(ctx, logFolder, opt) {
		if err != nil {
			return nil, err
		}
		base := strings.TrimPrefix(info.Name, logFolder+"/")
		if base > "_" {
			break // names of versions start with a digit: the rest is folders and hints
		}
		if version, ok := versionOf(base); ok {
			seg.take(version, info, base[20:], parts)
		}
	}
	if err := t.fillGaps(ctx, seg); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if !slices.Contains(p.names, "") {
			seg.checkpoints = append(seg.checkpoints, *p)
		}
	}
	slices.SortFunc(seg.checkpoints, func(a, b checkpointFiles) int {
		switch {
		case a.version != b.version:
			return int(b.version - a.version)
		case a.rank != b.rank:
			return a.rank - b.rank
		}
		return strings.Compare(a.names[0], b.names[0])
	})
	return seg, nil
}

// gapLimit bounds how many missing commits a listing asks for one by one: more are not a race.
const gapLimit = 1000

// fillGaps looks for commits that a listing lacks between others. Reading a
// directory is no instant: it may show a file that came later and miss one that
// came before.
func (t *Table) fillGaps(ctx context.Context, seg *segment) error {
	if n := len(seg.commits); n == 0 || seg.commits[n-1]-seg.commits[0] == int64(n-1) {
		return nil
	}
	asked := 0
	for i := 1; i < len(seg.commits); i++ {
		for want := seg.commits[i-1] + 1; want < seg.commits[i] && asked < gapLimit; want++ {
			asked++
			info, err := t.store.Stat(ctx, commitName(want))
			if errors.Is(err, storage.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			seg.commits = slices.Insert(seg.commits, i, want)
			seg.times = slices.Insert(seg.times, i, info.ModTime.UnixMilli())
			i++
		}
	}
	return nil
}

// versionOf reads the 20 digits that a name of the log starts with.
func versionOf(base string) (int64, bool) {
	if len(base) <= 20 || base[20] != '.' {
		return 0, false
	}
	for _, c := range []byte(base[:20]) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	version, err := strconv.ParseInt(base[:20], 10, 64)
	return version, err == nil
}

// take sorts one name of the log into the segment; names it does not know are no error.
func (s *segment) take(version int64, info storage.Info, rest string, parts map[string]*checkpointFiles) {
	name := info.Name
	switch words := strings.Split(strings.TrimPrefix(rest, "."), "."); {
	case rest == ".json":
		s.commits = append(s.commits, version)
		s.times = append(s.times, info.ModTime.UnixMilli())
	case len(words) == 3 && words[1] == "compacted" && words[2] == "json":
		if to, ok := versionOf(rest[1:]); ok && to > version {
			s.compacted = append(s.compacted, compactedFile{version, to, name})
		}
	case words[0] != "checkpoint":
	case len(words) == 2 && words[1] == "parquet":
		s.checkpoints = append(s.checkpoints, checkpointFiles{version, rankClassic, []string{name}})
	case len(words) == 3 && len(words[1]) == 36 && (words[2] == "parquet" || words[2] == "json"):
		s.checkpoints = append(s.checkpoints, checkpointFiles{version, rankV2, []string{name}})
	case len(words) == 4 && words[3] == "parquet":
		part, err1 := strconv.Atoi(words[1])
		of, err2 := strconv.Atoi(words[2])
		if err1 != nil || err2 != nil || part < 1 || of < part || of > 1<<20 {
			return
		}
		key := fmt.Sprintf("%d.%d", version, of)
		if parts[key] == nil {
			parts[key] = &checkpointFiles{version, rankMultipart, make([]string, of)}
		}
		parts[key].names[part-1] = name
	}
}

// latest gives the newest version that the segment knows, or -1.
func (s *segment) latest() int64 {
	latest := int64(-1)
	if len(s.commits) > 0 {
		latest = s.commits[len(s.commits)-1]
	}
	if len(s.checkpoints) > 0 {
		latest = max(latest, s.checkpoints[0].version)
	}
	return latest
}

// after gives the commits of (from, to], which must be without a gap.
func (s *segment) after(from, to int64) error {
	i, _ := slices.BinarySearch(s.commits, from+1)
	for want := from + 1; want <= to; want++ {
		if i >= len(s.commits) || s.commits[i] != want {
			return fault.New("DELTA_LOG_GAP", "commit %d is missing from the log", want)
		}
		i++
	}
	return nil
}
