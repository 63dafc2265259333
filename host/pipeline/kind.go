package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// kindProperty is the table property that says what kind of dataset the table
// is: one cannot become the other in place, and nobody streams from a
// materialized view.
const kindProperty = "weir.datasetType"

// propertiesOf gives the properties that a table of the dataset gets.
func propertiesOf(d *dataset) map[string]string {
	out := map[string]string{kindProperty: strings.ToUpper(d.kind)}
	if d.merges() {
		out["delta.enableDeletionVectors"] = "true" // a changed row costs as much as it is long
	}
	maps.Copy(out, d.properties)
	if len(d.properties) > 0 {
		out[declaredProperty] = declaredText(slices.Sorted(maps.Keys(d.properties)))
	}
	if len(d.keys) > 0 {
		out[keysProperty] = keysText(d.keys)
	}
	if d.historical() {
		out[historyKeysProperty] = historyKeysText(d.cdcKeys())
	}
	return out
}

// kindOf gives the kind of dataset that a table is, "" when nothing says.
func kindOf(s *delta.Snapshot) string {
	return strings.ToLower(s.Metadata().Configuration[kindProperty])
}

// checkKinds refuses a dataset whose table is of another kind or of nobody's
// making, before anything is written. A full refresh is no way out either:
// readers that stream from the table would take what it holds for additions.
func (p *Pipeline) checkKinds(ctx context.Context, datasets []*dataset) error {
	var refused []error
	for _, d := range datasets {
		if !d.isTable() && d.kind != persistentView {
			continue
		}
		snapshot, err := snapshotOf(ctx, p.tableOf(d))
		if err != nil {
			return located(err, "DELTA_TABLE_UNREADABLE", fault.Where{Dataset: d.id, File: d.place.File, Line: d.place.Line})
		}
		if snapshot == nil {
			continue
		}
		have := kindOf(snapshot)
		if have == "" {
			// A table that was made before tables said what they are has an owner.
			if _, owned, err := p.catalog().Owner(ctx, d.name); err != nil {
				return err
			} else if !owned && !d.private {
				refused = append(refused, fault.New("TABLE_OR_VIEW_ALREADY_EXISTS", "the storage holds a table of that name which no pipeline made").
					At(fault.Where{Dataset: d.id}).At(d.place).WithHint("Rename the dataset, and read that table under its name"))
				continue
			}
			have = streamingTable
		}
		if have != d.kind {
			refused = append(refused, fault.New("CANNOT_CHANGE_DATASET_TYPE", "the table is a %s and is defined as a %s; one cannot become the other in place", words(have), words(d.kind)).
				At(fault.Where{Dataset: d.id}).At(d.place).WithHint("Give the new dataset another name, or remove the table with its checkpoint first"))
		}
	}
	return errors.Join(refused...)
}

func words(kind string) string { return strings.ReplaceAll(kind, "_", " ") }
