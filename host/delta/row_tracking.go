package delta

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

// The properties of row tracking.
const (
	enableRowTracking    = "delta.enableRowTracking"
	rowTrackingSuspended = "delta.rowTrackingSuspended"
)

// trackingState says what a table demands of its writers.
type trackingState int

const (
	trackingNone      trackingState = iota
	trackingSupported               // new files get ids
	trackingEnabled                 // rows that are moved or updated keep theirs, too
)

func rowTracking(p *Protocol, m *Metadata) trackingState {
	switch {
	case !p.has("rowTracking"):
		return trackingNone
	case isTrue(m, enableRowTracking):
		return trackingEnabled
	case isTrue(m, rowTrackingSuspended):
		return trackingNone
	}
	return trackingSupported
}

// nameRowColumns names the columns in which files keep the ids of rows that
// moved, for a table that enables row tracking. They are in no schema, so their
// names are made up never to meet a column's.
func nameRowColumns(p *Protocol, m *Metadata) {
	if rowTracking(p, m) != trackingEnabled {
		return
	}
	for property, prefix := range map[string]string{rowIDNameKey: "_row-id-col-", rowCommitVersionNameKey: "_row-commit-version-col-"} {
		if m.Configuration[property] == "" {
			m.Configuration[property] = prefix + uuid.NewString()
		}
	}
}

// trackRows gives new files the ids of their rows and the version that they
// come with. Another attempt needs other ones: the winner may have used them.
// A commit that enables row tracking gives them to the files that there are.
func (x *transaction) trackRows(ctx context.Context, a *attempt, p *Protocol, m *Metadata) error {
	state := rowTracking(p, m)
	if state == trackingNone {
		return nil
	}
	if state == trackingEnabled && isTrue(m, rowTrackingSuspended) {
		return fault.New("DELTA_INVALID_PROPERTY", "%s and %s cannot both be true", enableRowTracking, rowTrackingSuspended)
	}
	mark, keys, err := highWaterMark(a.base)
	if err != nil {
		return err
	}
	if state == trackingEnabled && a.base != nil && rowTracking(a.base.protocol, a.base.metadata) != trackingEnabled {
		if err := a.readdUntracked(); err != nil {
			return err
		}
	}
	next := mark + 1
	for i := range a.actions.adds {
		f := &a.actions.adds[i]
		n, err := x.physicalRows(ctx, f)
		if err != nil {
			return err
		}
		if f.BaseRowID == nil {
			if next < 0 || next > math.MaxInt64-n {
				return fault.New("DELTA_COMMIT_FAILED", "the table has no row ids left")
			}
			first := next
			f.BaseRowID = &first
		}
		// A file that comes back brings its ids along.
		next = max(next, *f.BaseRowID+n)
		if f.DefaultRowCommitVersion == nil {
			version := a.version
			f.DefaultRowCommitVersion = &version
		}
	}
	if next == mark+1 {
		return nil
	}
	keys["rowIdHighWaterMark"] = json.RawMessage(itoa(next - 1))
	conf, err := json.Marshal(keys)
	if err != nil {
		return fault.Wrap(err, "DELTA_COMMIT_FAILED", "row ids")
	}
	a.actions.domains = append(a.actions.domains, DomainMetadata{Domain: rowTrackingDomainName, Configuration: string(conf)})
	return nil
}

// highWaterMark gives the highest row id that was ever given, -1 for none, and
// all keys of the domain that tells: other writers keep more there.
func highWaterMark(base *Snapshot) (int64, map[string]json.RawMessage, error) {
	keys := map[string]json.RawMessage{}
	if base == nil {
		return -1, keys, nil
	}
	d, ok := base.domains[rowTrackingDomainName]
	if !ok {
		return -1, keys, nil
	}
	mark := int64(-1)
	err := json.Unmarshal([]byte(d.Configuration), &keys)
	if raw, has := keys["rowIdHighWaterMark"]; err == nil && has {
		err = json.Unmarshal(raw, &mark)
	}
	if err != nil || mark < -1 {
		return 0, nil, fault.New("DELTA_INVALID_LOG", "domain %s holds %q, no highest row id", rowTrackingDomainName, d.Configuration)
	}
	return mark, keys, nil
}

// readdUntracked adds the files again that have no row ids yet. They are the
// same files: only what the log says of them changes.
func (a *attempt) readdUntracked() error {
	gone := map[string]bool{}
	for i := range a.actions.removes {
		key, err := fileKey(a.actions.removes[i].Path, a.actions.removes[i].DeletionVector)
		if err != nil {
			return err
		}
		gone[key] = true
	}
	for i := range a.actions.adds {
		key, err := fileKey(a.actions.adds[i].Path, a.actions.adds[i].DeletionVector)
		if err != nil {
			return err
		}
		gone[key] = true
	}
	var bare []AddFile
	a.base.files.each(func(key string, f *AddFile) {
		if !gone[key] && (f.BaseRowID == nil || f.DefaultRowCommitVersion == nil) {
			again := *f
			again.DataChange = false
			bare = append(bare, again)
		}
	})
	slices.SortFunc(bare, func(f, g AddFile) int { return strings.Compare(f.Path, g.Path) })
	a.actions.adds = append(a.actions.adds, bare...)
	return nil
}
