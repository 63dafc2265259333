package keyindex

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// collision is two live rows of one identity.
type collision [2]Place

// duplicates is the failure of a lookup that found two rows where one can be.
func (x *Index) duplicates(ctx context.Context, snap *delta.Snapshot, all []collision) error {
	const most = 5
	var examples []string
	for _, c := range all[:min(len(all), most)] {
		text := fmt.Sprintf("row %d of %s and row %d of %s", c[0].Row, c[0].File.Path, c[1].Row, c[1].File.Path)
		if key, err := x.keyAt(ctx, snap, c[0]); err == nil {
			text = key + " in " + text
		}
		examples = append(examples, text)
	}
	return fault.New("CDC_TARGET_DUPLICATE_KEY", "the target has %d keys in more than one row: %s", len(all), strings.Join(examples, "; ")).
		WithHint("AUTO CDC keeps one row for each key, so another writer added these. Refresh the target in full")
}

// keyAt reads the identity columns of a row.
func (x *Index) keyAt(ctx context.Context, snap *delta.Snapshot, p Place) (string, error) {
	r, err := snap.Scan(ctx, delta.ScanOptions{Columns: x.columns(), Files: []delta.AddFile{*p.File}, RowIndex: true})
	if err != nil {
		return "", err
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch()
		last := int(rec.NumCols()) - 1
		for i := range int(rec.NumRows()) {
			if rec.Column(last).GetOneForMarshal(i) != p.Row {
				continue
			}
			var parts []string
			for j, name := range x.columns() {
				parts = append(parts, name+" = "+rec.Column(j).ValueStr(i))
			}
			return "key (" + strings.Join(parts, ", ") + ")", nil
		}
	}
	return "", r.Err()
}
