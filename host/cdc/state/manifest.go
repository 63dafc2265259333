package state

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var fpManifestWritten = failpoint.New("cdc.manifest_written")

// Format is the format of manifests and runs that this package writes, and the newest it reads.
const Format = 1

// Manifest is one version of a state.
type Manifest struct {
	K          int64           `json:"k"`                    // set by Put
	Base       int64           `json:"base"`                 // version of the target it was computed on; -1: there was none
	Definition json.RawMessage `json:"definition,omitempty"` // the caller's: what the flows were when it was written
	PerKey     bool            `json:"per_key,omitempty"`    // one entry a key; else one an event
	Runs       []RunInfo       `json:"runs,omitempty"`       // oldest first
	Truncated  []byte          `json:"truncated,omitempty"`  // order of the newest TRUNCATE
	Entries    int64           `json:"entries"`              // of all runs; set by Put
	Live       int64           `json:"live"`                 // rows of the target
	Snapshot   json.RawMessage `json:"snapshot,omitempty"`   // the caller's: the latest snapshot
}

// RunInfo names a run, or the part of one that counts, and says what to check
// when it is opened. Runs are cut where a compaction that was bounded stopped.
type RunInfo struct {
	Name    string `json:"name"`
	From    uint32 `json:"from,omitempty"` // the first two bytes of the hashes that count: from,
	To      uint32 `json:"to,omitempty"`   // and up to; 0 is the end
	Entries int64  `json:"entries"`        // that count
	Bytes   int64  `json:"bytes"`
	Index   []byte `json:"index"` // sizes and sums of the blocks, see index.go
}

// hashSlices is into how many parts hashes are cut by their first two bytes.
const hashSlices = 1 << 16

// to is where the part ends, as a number.
func (r RunInfo) to() uint32 {
	if r.To == 0 {
		return hashSlices
	}
	return r.To
}

// part narrows a run; entries are those that are left.
func (r RunInfo) part(from, to uint32, entries int64) RunInfo {
	r.From, r.To, r.Entries = from, to, entries
	if to == hashSlices {
		r.To = 0
	}
	return r
}

// sliceStart is the lowest hash of a slice; nil is the end.
func sliceStart(n uint32) []byte {
	if n >= hashSlices {
		return nil
	}
	h := make([]byte, 16)
	h[0], h[1] = byte(n>>8), byte(n)
	return h
}

// envelope is what a manifest's file holds.
type envelope struct {
	Format   int             `json:"format"`
	Sum      string          `json:"sum"` // xxh3-128 of the manifest's bytes
	Manifest json.RawMessage `json:"manifest"`
}

func manifestName(k int64) string { return fmt.Sprintf("%020d.json", k) }

func parseManifestName(name string) (int64, bool) {
	stem, ok := strings.CutSuffix(name, ".json")
	k, err := strconv.ParseInt(stem, 10, 64)
	return k, ok && err == nil && k >= 0 && manifestName(k) == name
}

func encodeManifest(m *Manifest) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "a manifest cannot be written")
	}
	data, err := json.Marshal(envelope{Format, sumText(body), body})
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "a manifest cannot be written")
	}
	return append(data, '\n'), nil
}

func sumText(b []byte) string {
	sum := xxh3.Hash128(b).Bytes()
	return hex.EncodeToString(sum[:])
}

func decodeManifest(data []byte, k int64) (*Manifest, error) {
	name := manifestName(k)
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.Format < 1 {
		return nil, corrupt(name, "it is no manifest")
	}
	if head.Format > Format {
		return nil, fault.New("CDC_STATE_TOO_NEW", "the state's manifest has format %d, and this weir reads formats up to %d", head.Format, Format).
			At(fault.Where{File: name}).WithHint("Use the release of weir that wrote it, or a later one; or run a full refresh of the target")
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil || sumText(e.Manifest) != e.Sum {
		return nil, corrupt(name, "its sum is wrong")
	}
	m := &Manifest{}
	dec := json.NewDecoder(bytes.NewReader(e.Manifest))
	if err := dec.Decode(m); err != nil || m.K != k {
		return nil, corrupt(name, "it is no manifest")
	}
	for _, r := range m.Runs {
		if path.Dir(r.Name) != runFolder || storage.CheckName(r.Name) != nil || r.Entries <= 0 || r.Bytes <= 0 || r.From >= r.to() || r.to() > hashSlices {
			return nil, corrupt(name, "it names no run")
		}
	}
	return m, nil
}

// Put writes a manifest under the next free number, which it sets in m and
// gives back. The state is valid as soon as a commit of the target names it.
// Until then m.K is the version it follows: that of the state that was loaded
// and whose manifest m was made of, or -1.
func (s *Store) Put(ctx context.Context, m *Manifest) (int64, error) {
	last, err := s.newest(ctx)
	if err != nil {
		return 0, err
	}
	m.Runs = slices.DeleteFunc(slices.Clone(m.Runs), func(r RunInfo) bool { return r.Entries == 0 })
	m.Entries = 0
	for _, r := range m.Runs {
		m.Entries += r.Entries
	}
	if err := s.sound(ctx, m); err != nil {
		return 0, err
	}
	for k := max(last, m.K) + 1; ; k++ {
		m.K = k
		data, err := encodeManifest(m)
		if err != nil {
			return 0, err
		}
		err = s.files.PutIfAbsent(ctx, manifestName(k), data)
		if errors.Is(err, storage.ErrExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		fpManifestWritten.Hit()
		return k, nil
	}
}

// sound makes sure that no run can have been swept meanwhile: Sweep spares what
// the version that m follows names, and what is stamped with it or a later one.
func (s *Store) sound(ctx context.Context, m *Manifest) error {
	var before []string
	for _, r := range m.Runs {
		stamp, _ := runStamp(r.Name)
		if stamp >= m.K && s.isFresh(r.Name) {
			continue
		}
		if before == nil {
			var err error
			if before, err = s.namesOf(ctx, m.K); err != nil {
				return err
			}
		}
		if slices.Contains(before, r.Name) {
			continue
		}
		if stamp < m.K {
			return fault.New("INTERNAL_ERROR", "version %d of a state is followed by one with a run of before", m.K).At(fault.Where{File: r.Name})
		}
		info, err := s.files.Stat(ctx, r.Name)
		if err != nil {
			return missing(err, r.Name)
		}
		if info.Size != r.Bytes {
			return corrupt(r.Name, "it does not have its %d bytes", r.Bytes)
		}
	}
	return nil
}

// namesOf gives the runs that a version names; none for k < 0.
func (s *Store) namesOf(ctx context.Context, k int64) ([]string, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if k >= 0 && last.K != k {
		data, err := s.files.Get(ctx, manifestName(k))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New("CDC_STATE_SUPERSEDED", "version %d of the state, on which this one builds, was removed: another update of the target went on meanwhile", k).Retryable()
		}
		if err != nil {
			return nil, err
		}
		m, err := decodeManifest(data, k)
		if err != nil {
			return nil, err
		}
		last = *m
	}
	names := []string{}
	for _, r := range last.Runs {
		if k >= 0 {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

func (s *Store) isFresh(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, fresh := s.fresh[run]
	return fresh
}

// newest gives the highest number that stands in the folder, of a manifest or as the stamp of a run; -1 when it is empty.
func (s *Store) newest(ctx context.Context) (int64, error) {
	last := int64(-1)
	for info, err := range s.files.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return 0, err
		}
		if k, ok := parseManifestName(info.Name); ok {
			last = max(last, k)
		} else if stamp, ok := runStamp(info.Name); ok {
			last = max(last, stamp)
		}
	}
	return last, nil
}

func corrupt(file, format string, args ...any) error {
	return fault.New("CDC_STATE_CORRUPT", "the state of the target is damaged: %s", fmt.Sprintf(format, args...)).
		At(fault.Where{File: file}).
		WithHint("Restore the file from a backup, or run a full refresh of the target, which builds the state anew")
}
