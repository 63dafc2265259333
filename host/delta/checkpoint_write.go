package delta

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

var (
	fpBeforeCheckpoint  = failpoint.New("delta.before_checkpoint")
	fpCheckpointWritten = failpoint.New("delta.checkpoint_written")
)

// CheckpointForm is how a checkpoint is laid out.
type CheckpointForm string

// The forms of checkpoints. Those of V2 keep the files of the table in sidecars
// and need the table feature v2Checkpoint.
const (
	CheckpointByPolicy CheckpointForm = ""        // as the property delta.checkpointPolicy says
	CheckpointClassic  CheckpointForm = "classic" // one Parquet file under the classic name
	CheckpointV2       CheckpointForm = "v2"      // a Parquet file under a name of its own, and sidecars
	CheckpointV2JSON   CheckpointForm = "v2-json" // the same with a JSON file at the top
)

// Checkpoint writes a checkpoint of the newest version and gives that version.
// Commits write them by themselves, every delta.checkpointInterval versions.
func (t *Table) Checkpoint(ctx context.Context, form CheckpointForm) (int64, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	return s.version, t.writeCheckpointAs(ctx, s, form)
}

// writeCheckpoint writes the checkpoint that a commit owes, and removes what the log has no use for any more.
func (t *Table) writeCheckpoint(ctx context.Context, s *Snapshot) error {
	if err := t.writeCheckpointAs(ctx, s, CheckpointByPolicy); err != nil {
		return err
	}
	return t.cleanUpAfter(ctx, s)
}

// writeCheckpointAs writes a checkpoint and the hint to it. Several writers may
// do so for one version: each replaces the other's file by one that holds the
// same state, or writes one beside it.
func (t *Table) writeCheckpointAs(ctx context.Context, s *Snapshot, form CheckpointForm) error {
	fpBeforeCheckpoint.Hit()
	var hint *checkpointHint
	var err error
	switch form {
	case CheckpointByPolicy:
		if strings.EqualFold(s.metadata.Configuration["delta.checkpointPolicy"], "v2") && s.protocol.has("v2Checkpoint") {
			hint, err = t.writeV2Checkpoint(ctx, s, CheckpointV2)
		} else {
			hint, err = t.writeClassicCheckpoint(ctx, s)
		}
	case CheckpointClassic:
		hint, err = t.writeClassicCheckpoint(ctx, s)
	case CheckpointV2, CheckpointV2JSON:
		if !s.protocol.has("v2Checkpoint") {
			return unsupported("a checkpoint of form %s needs the table feature v2Checkpoint: set delta.checkpointPolicy to v2", form)
		}
		hint, err = t.writeV2Checkpoint(ctx, s, form)
	default:
		return fault.New("INVALID_ARGUMENT", "there is no form %q of checkpoints", form)
	}
	if err != nil {
		return err
	}
	fpCheckpointWritten.Hit()
	if old, ok, err := t.lastCheckpoint(ctx); err != nil || ok && old > s.version {
		return err // another writer is ahead
	}
	data, err := hint.encode()
	if err != nil {
		return err
	}
	return t.store.Put(ctx, lastCheckpointName, data)
}

func (t *Table) writeClassicCheckpoint(ctx context.Context, s *Snapshot) (*checkpointHint, error) {
	state := t.checkpointState(s)
	name := checkpointName(s.version)
	size, err := t.writeActions(ctx, s, name, false, func(w *actionWriter) error {
		if err := w.smallActions(s); err != nil {
			return err
		}
		if err := w.removes(state.removes); err != nil {
			return err
		}
		return w.adds(state.adds)
	})
	if err != nil {
		return nil, err
	}
	return &checkpointHint{
		Version: s.version, Size: int64(2 + len(s.sortedTxns()) + len(s.domains) + len(state.removes) + len(state.adds)), SizeInBytes: size, NumOfAddFiles: int64(len(state.adds)),
	}, nil
}

// checkpointState is what a checkpoint holds of the files, in a fixed order.
type checkpointState struct {
	adds    []*AddFile
	removes []*RemoveFile
}

func (t *Table) checkpointState(s *Snapshot) *checkpointState {
	return &checkpointState{adds: s.sortedFiles(), removes: s.tombstones(t.now())}
}

// tombstones gives those that VACUUM still needs to know, sorted.
func (s *Snapshot) tombstones(now time.Time) []*RemoveFile {
	expired := now.Add(-s.tombstoneRetention()).UnixMilli()
	var out []*RemoveFile
	s.tombs.each(func(_ string, f *RemoveFile) {
		if f.DeletionTimestamp != nil && *f.DeletionTimestamp > expired {
			out = append(out, f)
		}
	})
	sortTombstones(out)
	return out
}

// writeActions writes one Parquet file of actions and gives its size.
func (t *Table) writeActions(ctx context.Context, s *Snapshot, name string, filesOnly bool, fill func(*actionWriter) error) (int64, error) {
	w, err := t.store.Create(ctx, name)
	if err != nil {
		return 0, err
	}
	out := &countingWriter{w: w}
	if err := t.encodeActions(ctx, s, out, filesOnly, fill); err != nil {
		return 0, errors.Join(fault.Place(err, "DELTA_WRITE_FAILED", fault.Where{File: name}), w.Abort())
	}
	if err := w.Commit(); err != nil {
		return 0, errors.Join(err, w.Abort())
	}
	return out.n, nil
}

// sidecarTarget is how many actions a sidecar holds at most.
const sidecarTarget = 100_000

// writeV2Checkpoint writes the sidecars that are new, and the file that names all.
func (t *Table) writeV2Checkpoint(ctx context.Context, s *Snapshot, form CheckpointForm) (*checkpointHint, error) {
	state := t.checkpointState(s)
	plan := t.planSidecars(ctx, s, state)
	for i := range plan {
		if err := t.writeSidecar(ctx, s, &plan[i]); err != nil {
			return nil, err
		}
	}
	name := v2CheckpointName(s.version, form)
	actions, size, err := t.writeTop(ctx, s, name, form, plan)
	if err != nil {
		return nil, err
	}
	info, err := t.store.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	t.rememberSidecars(plan)
	hint := &checkpointHint{Version: s.version, NumOfAddFiles: int64(len(state.adds)), V2: &v2Hint{
		Path: strings.TrimPrefix(name, logFolder+"/"), SizeInBytes: size, ModificationTime: info.ModTime.UnixMilli(),
	}}
	hint.Size, hint.SizeInBytes = int64(actions+len(plan)+len(state.adds)+len(state.removes)), size
	for i := range plan {
		hint.SizeInBytes += plan[i].file.SizeInBytes
		hint.V2.SidecarFiles = append(hint.V2.SidecarFiles, plan[i].file)
	}
	// Spark leaves out what would make the hint large.
	const most = 30
	if len(hint.V2.SidecarFiles) > most {
		hint.V2.SidecarFiles = nil
	}
	if actions <= most {
		hint.V2.NonFileActions = s.smallActionList()
	}
	return hint, nil
}

func v2CheckpointName(version int64, form CheckpointForm) string {
	ext := ".parquet"
	if form == CheckpointV2JSON {
		ext = ".json"
	}
	return strings.TrimSuffix(checkpointName(version), "parquet") + uuid.NewString() + ext
}

// smallActionList gives the actions that are no files, as the log writes them.
func (s *Snapshot) smallActionList() []any {
	one := func(key string, v any) any { return map[string]any{key: v} }
	out := []any{
		one("checkpointMetadata", map[string]any{"version": s.version, "tags": map[string]string{}}), one("protocol", s.protocol), one("metaData", s.metadata),
	}
	for _, txn := range s.sortedTxns() {
		out = append(out, one("txn", txn))
	}
	for _, d := range s.sortedDomains() {
		out = append(out, one("domainMetadata", d))
	}
	return out
}

// writeTop writes the file of a V2 checkpoint that names the sidecars, and
// tells how many actions beside them it holds.
func (t *Table) writeTop(ctx context.Context, s *Snapshot, name string, form CheckpointForm, plan []sidecarPlan) (actions int, size int64, err error) {
	small := s.smallActionList()
	if form == CheckpointV2JSON {
		for i := range plan {
			small = append(small, map[string]any{"sidecar": plan[i].file})
		}
		data, err := encodeActions(small)
		if err != nil {
			return 0, 0, err
		}
		return len(small) - len(plan), int64(len(data)), t.store.Put(ctx, name, data)
	}
	size, err = t.writeActions(ctx, s, name, false, func(w *actionWriter) error {
		if err := w.smallActions(s); err != nil {
			return err
		}
		return w.sidecars(s.version, plan)
	})
	return len(small), size, err
}

// checkpointHint is the content of _last_checkpoint.
type checkpointHint struct {
	Version       int64   `json:"version"`
	Size          int64   `json:"size"`
	SizeInBytes   int64   `json:"sizeInBytes"`
	NumOfAddFiles int64   `json:"numOfAddFiles"`
	V2            *v2Hint `json:"v2Checkpoint,omitempty"`
	Checksum      string  `json:"checksum,omitempty"`
}

// v2Hint spares a reader the file at the top of a V2 checkpoint.
type v2Hint struct {
	Path             string    `json:"path"`
	SizeInBytes      int64     `json:"sizeInBytes"`
	ModificationTime int64     `json:"modificationTime"`
	NonFileActions   []any     `json:"nonFileActions,omitempty"`
	SidecarFiles     []sidecar `json:"sidecarFiles,omitempty"`
}

func (h *checkpointHint) encode() ([]byte, error) {
	h.Checksum = ""
	data, err := json.Marshal(h)
	if err == nil {
		if h.Checksum, err = jsonChecksum(data); err == nil {
			data, err = json.Marshal(h)
		}
	}
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_WRITE_FAILED", "checkpoint hint")
	}
	return data, nil
}
