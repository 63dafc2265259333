package delta

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

// sidecarPlan is one sidecar of a V2 checkpoint: what it holds, and where it
// lies once it is written.
type sidecarPlan struct {
	file    sidecar
	adds    []*AddFile
	removes []*RemoveFile
}

func (p *sidecarPlan) actions() int { return len(p.adds) + len(p.removes) }

// planSidecars divides a state into sidecars. Those of the checkpoint before
// that still hold true are named again: what is written anew follows the
// changes since, not the size of the table. Small ones are merged into what is
// new, so that their number grows with the logarithm of the number of checkpoints.
func (t *Table) planSidecars(ctx context.Context, s *Snapshot, state *checkpointState) []sidecarPlan {
	kept := t.trueSidecars(ctx, s, state)
	slices.SortStableFunc(kept, func(a, b sidecarPlan) int { return cmp.Compare(b.actions(), a.actions()) })
	covered := 0
	for i := range kept {
		covered += kept[i].actions()
	}
	fresh := len(state.adds) + len(state.removes) - covered
	for fresh > 0 && len(kept) > 0 && kept[len(kept)-1].actions() <= min(2*fresh, sidecarTarget/2) {
		fresh += kept[len(kept)-1].actions()
		kept = kept[:len(kept)-1]
	}
	pool := sidecarPlan{adds: without(state.adds, kept, func(p *sidecarPlan) []*AddFile { return p.adds }),
		removes: without(state.removes, kept, func(p *sidecarPlan) []*RemoveFile { return p.removes })}
	return append(kept, pool.divide()...)
}

// without gives the items that no plan holds.
func without[T any](items []*T, plans []sidecarPlan, of func(*sidecarPlan) []*T) []*T {
	held := map[*T]bool{}
	for i := range plans {
		for _, v := range of(&plans[i]) {
			held[v] = true
		}
	}
	if len(held) == 0 {
		return items
	}
	out := make([]*T, 0, max(len(items)-len(held), 0))
	for _, v := range items {
		if !held[v] {
			out = append(out, v)
		}
	}
	return out
}

// divide cuts a plan into pieces of the target size.
func (p *sidecarPlan) divide() (out []sidecarPlan) {
	for len(p.adds) > 0 {
		n := min(len(p.adds), sidecarTarget)
		out = append(out, sidecarPlan{adds: p.adds[:n:n]})
		p.adds = p.adds[n:]
	}
	for len(p.removes) > 0 {
		n := min(len(p.removes), sidecarTarget)
		if last := len(out) - 1; last >= 0 && out[last].actions()+n <= sidecarTarget {
			out[last].removes = p.removes[:n:n]
		} else {
			out = append(out, sidecarPlan{removes: p.removes[:n:n]})
		}
		p.removes = p.removes[n:]
	}
	return out
}

// trueSidecars gives the known sidecars all of whose actions are in the state, and that are still there.
func (t *Table) trueSidecars(ctx context.Context, s *Snapshot, state *checkpointState) []sidecarPlan {
	t.mu.Lock()
	known := t.sidecars
	t.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	unexpired := make(map[*RemoveFile]bool, len(state.removes))
	for _, r := range state.removes {
		unexpired[r] = true
	}
	var out []sidecarPlan
	for _, p := range known {
		if p.holds(s, unexpired) && t.sidecarExists(ctx, &p.file) {
			out = append(out, p)
		}
	}
	return out
}

// holds tells whether every action of the sidecar is in the snapshot as it is:
// the same value in memory, which lives as long as the log does not change it.
func (p *sidecarPlan) holds(s *Snapshot, unexpired map[*RemoveFile]bool) bool {
	for _, f := range p.adds {
		key, err := fileKey(f.Path, f.DeletionVector)
		if live, ok := s.files.get(key); err != nil || !ok || live != f {
			return false
		}
	}
	for _, r := range p.removes {
		if !unexpired[r] {
			return false
		}
	}
	return p.actions() > 0
}

func (t *Table) sidecarExists(ctx context.Context, f *sidecar) bool {
	name, err := canonicalPath(f.uri())
	if err != nil || isAbsolute(name) {
		return false
	}
	info, err := t.store.Stat(ctx, name)
	return err == nil && info.Size == f.SizeInBytes
}

func (t *Table) rememberSidecars(plan []sidecarPlan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sidecars = plan
}

// writeSidecar writes a sidecar that is new.
func (t *Table) writeSidecar(ctx context.Context, s *Snapshot, p *sidecarPlan) error {
	if p.file.Path != "" {
		return nil
	}
	p.file.Path = uuid.NewString() + ".parquet"
	name := sidecarFolder + p.file.Path
	size, err := t.writeActions(ctx, s, name, true, func(w *actionWriter) error {
		if err := w.removes(p.removes); err != nil {
			return err
		}
		return w.adds(p.adds)
	})
	if err != nil {
		return err
	}
	info, err := t.store.Stat(ctx, name)
	if err != nil {
		return err
	}
	p.file.SizeInBytes, p.file.ModificationTime = size, info.ModTime.UnixMilli()
	return nil
}

// uri is where a sidecar lies: normally a bare name in its folder.
func (s *sidecar) uri() string {
	if strings.Contains(s.Path, "/") {
		return s.Path
	}
	return sidecarFolder + s.Path
}

// sidecarsOf gives the sidecars of a checkpoint that was read, with what they hold.
func sidecarsOf(files []sidecar, contents []*checkpointContent) ([]sidecarPlan, error) {
	if len(files) != len(contents) {
		return nil, fault.New("DELTA_INVALID_CHECKPOINT", "%d of %d sidecars were read", len(contents), len(files))
	}
	out := make([]sidecarPlan, len(files))
	for i, c := range contents {
		out[i].file = files[i]
		for _, l := range c.adds {
			for j := range l.files {
				out[i].adds = append(out[i].adds, &l.files[j])
			}
		}
		for _, l := range c.removes {
			for j := range l.files {
				out[i].removes = append(out[i].removes, &l.files[j])
			}
		}
	}
	return out, nil
}
