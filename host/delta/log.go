package delta

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Entry is one version of the log.
type Entry struct {
	Version int64
	// Timestamp is the in-commit timestamp, or the time of the file.
	Timestamp  time.Time
	Adds       []AddFile
	Removes    []RemoveFile
	Metadata   *Metadata
	Protocol   *Protocol
	Txns       []Txn
	Domains    []DomainMetadata
	ChangeData []CDCFile
	CommitInfo *CommitInfo
}

// Log walks the versions from..to, both included; to < 0 is the newest. It ends
// early, without an error, behind the newest version. A version that was cleaned
// up or is missing is the error DELTA_LOG_GAP, and a change of the protocol to
// one we cannot read is DELTA_UNSUPPORTED_FEATURE.
func (t *Table) Log(ctx context.Context, from, to int64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for version := max(from, 0); to < 0 || version <= to; version++ {
			e, err := t.entry(ctx, version)
			if errors.Is(err, storage.ErrNotExist) {
				if err = t.checkEnd(ctx, version); err == nil {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// checkEnd tells whether nothing comes at or after a version that is not there.
func (t *Table) checkEnd(ctx context.Context, version int64) error {
	seg, err := t.list(ctx, 0)
	if err != nil {
		return err
	}
	if latest := seg.latest(); latest >= version {
		return fault.New("DELTA_LOG_GAP", "version %d is not in the log any more (the newest is %d)", version, latest).
			WithHint("Read the table from a snapshot instead of its log")
	}
	return nil
}

// OldestVersion gives the version from which on the log has every commit.
func (t *Table) OldestVersion(ctx context.Context) (int64, error) {
	seg, err := t.list(ctx, 0)
	if err != nil {
		return 0, err
	}
	oldest := seg.latest() + 1
	for _, version := range slices.Backward(seg.commits) {
		if version != oldest-1 {
			break
		}
		oldest = version
	}
	return oldest, nil
}

func (t *Table) entry(ctx context.Context, version int64) (*Entry, error) {
	c, err := t.readCommit(ctx, version)
	if err != nil {
		return nil, err
	}
	if c.protocol != nil {
		if err := c.protocol.checkReadable(); err != nil {
			return nil, err
		}
	}
	return &Entry{
		Version: version, Timestamp: c.time(), Adds: c.adds, Removes: c.removes, Metadata: c.metadata,
		Protocol: c.protocol, Txns: c.txns, Domains: c.domains, ChangeData: c.cdc, CommitInfo: c.info,
	}, nil
}

// HistoryEntry is one version as `weir delta history` prints it.
type HistoryEntry struct {
	Version             int64          `json:"version"`
	Timestamp           time.Time      `json:"timestamp"`
	Operation           string         `json:"operation"`
	OperationParameters map[string]any `json:"operation_parameters,omitempty"`
	OperationMetrics    map[string]any `json:"operation_metrics,omitempty"`
	ReadVersion         *int64         `json:"read_version,omitempty"`
	IsBlindAppend       *bool          `json:"is_blind_append,omitempty"`
	EngineInfo          string         `json:"engine_info,omitempty"`
	UserMetadata        string         `json:"user_metadata,omitempty"`
	Txns                []Txn          `json:"txns,omitempty"`
	AddedFiles          int            `json:"added_files"`
	RemovedFiles        int            `json:"removed_files"`
}

// History tells of the newest versions, newest first; limit <= 0 is all that the log still has.
func (t *Table) History(ctx context.Context, limit int) ([]HistoryEntry, error) {
	seg, err := t.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	if seg.latest() < 0 {
		return nil, fault.Wrap(storage.ErrNotExist, "DELTA_TABLE_NOT_FOUND", "there is no Delta table in %q", storage.Root(t.store))
	}
	var out []HistoryEntry
	for i := len(seg.commits) - 1; i >= 0 && (limit <= 0 || len(out) < limit); i-- {
		e, err := t.entry(ctx, seg.commits[i])
		if errors.Is(err, storage.ErrNotExist) {
			break // cleaned up since the listing, and so is what comes before
		}
		if err != nil {
			return nil, err
		}
		h := HistoryEntry{Version: e.Version, Timestamp: e.Timestamp, Txns: e.Txns, AddedFiles: len(e.Adds), RemovedFiles: len(e.Removes)}
		if c := e.CommitInfo; c != nil {
			h.Operation, h.OperationParameters, h.OperationMetrics = c.Operation, c.OperationParameters, c.OperationMetrics
			h.ReadVersion, h.IsBlindAppend, h.EngineInfo, h.UserMetadata = c.ReadVersion, c.IsBlindAppend, c.EngineInfo, c.UserMetadata
		}
		out = append(out, h)
	}
	return out, nil
}
