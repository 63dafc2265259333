package abi

import (
	"fmt"
	"strings"
)

// maxEntries bounds the lists of a manifest.
const maxEntries = 10_000

// check holds the rules that go beyond one field.
func (m *Manifest) check() error {
	if n := len(m.Functions) + len(m.Datasets) + len(m.Flows); n > maxEntries {
		return invalid("", "%d functions, datasets and flows are over the limit of %d", n, maxEntries)
	}
	byName := map[string]*Function{}
	for i := range m.Functions {
		f, path := &m.Functions[i], index("functions", i)
		if byName[f.Name] != nil {
			return invalid(path+".name", "%q stands twice", f.Name)
		}
		byName[f.Name] = f
		if err := f.check(path); err != nil {
			return err
		}
	}
	datasets := map[string]bool{}
	for i := range m.Datasets {
		d, path := &m.Datasets[i], index("datasets", i)
		if datasets[strings.ToLower(d.Name)] {
			return invalid(path+".name", "%q stands twice", d.Name)
		}
		datasets[strings.ToLower(d.Name)] = true
		if err := d.check(path, byName); err != nil {
			return err
		}
	}
	flows := map[[2]string]bool{}
	for i := range m.Flows {
		f, path := &m.Flows[i], index("flows", i)
		name := f.Name
		if name == "" {
			name = f.Target
		}
		key := [2]string{strings.ToLower(f.Target), strings.ToLower(name)}
		if flows[key] {
			return invalid(path+".name", "target %s has two flows of the name %q", f.Target, name)
		}
		flows[key] = true
		if err := f.check(path, byName); err != nil {
			return err
		}
	}
	return nil
}

func (f *Function) check(path string) error {
	switch f.Kind {
	case KindMap, KindStateful, KindForeachBatch:
		if len(f.Inputs) == 0 {
			return invalid(path+".inputs", "a function of kind %s needs at least one input", f.Kind)
		}
		for i, in := range f.Inputs {
			if i > 0 && in.Mode == ModeStream {
				return invalid(index(path+".inputs", i)+".mode", "only the first input of kind %s may be a stream", f.Kind)
			}
		}
	}
	if f.Kind == KindSnapshot {
		for i, in := range f.Inputs {
			if in.Mode == ModeStream {
				return invalid(index(path+".inputs", i)+".mode", "a snapshot provider reads whole datasets, no stream")
			}
		}
	}
	if _, known := VersionType(f.Version); f.Version != "" && (f.Kind != KindSnapshot || !known) {
		if f.Kind != KindSnapshot {
			return invalid(path+".version", "kind %s gives no snapshots", f.Kind)
		}
		return invalid(path+".version", "%q is none of int, string, float, bytes, date, timestamp, decimal(p,s)", clip(f.Version, 80))
	}
	if f.RowAligned && f.Kind != KindMap && f.Kind != KindStateful {
		return invalid(path+".row_aligned", "kind %s cannot be row-aligned", f.Kind)
	}
	if f.Outputs != nil {
		if err := f.checkOutputs(path); err != nil {
			return err
		}
	}
	if f.Passthrough != nil && !f.RowAligned {
		return invalid(path+".passthrough", "needs row_aligned")
	}
	out := map[string]bool{}
	for _, r := range f.Passthrough {
		if k := strings.ToLower(r.Output); out[k] {
			return invalid(path+".passthrough", "output column %q stands twice", r.Output)
		} else {
			out[k] = true
		}
	}
	for i, c := range f.Output {
		if out[strings.ToLower(c.Name)] {
			return invalid(index(path+".output", i)+".name", "%q is a passthrough column as well", c.Name)
		}
	}
	return nil
}

func (f *Function) checkOutputs(path string) error {
	path += ".outputs"
	switch {
	case f.Output != nil:
		return invalid(path, "stands beside output; a function has one of them")
	case f.Kind != KindForeachBatch && f.Kind != KindMap:
		return invalid(path, "kind %s has one output", f.Kind)
	case f.RowAligned:
		return invalid(path, "a row-aligned function has one output")
	}
	for i, o := range f.Outputs {
		if (o.Mode == OutputMerge) != (len(o.Keys) > 0) {
			return invalid(index(path, i)+".keys", "go with mode merge, and only with it")
		}
	}
	return nil
}

func (d *Dataset) check(path string, functions map[string]*Function) error {
	var f *Function
	if d.Function != "" {
		if f = functions[d.Function]; f == nil {
			return invalid(path+".function", "the module has no function %q", d.Function)
		}
	}
	var err error
	switch d.Type {
	case DatasetStreamingTable:
		err = d.checkStreamingTable(path, f)
	case DatasetMaterializedView:
		err = d.checkView(path, f)
		for i := 0; err == nil && i < len(f.Inputs); i++ {
			if f.Inputs[i].Mode == ModeStream {
				err = invalid(path+".function", "a materialized view reads no stream, and %s does (input %d)", f.Name, i)
			}
		}
	case DatasetTemporaryView:
		err = d.checkView(path, f)
		if err == nil {
			err = d.refuseFields(path, d.Private, "private", d.TableProperties != nil, "table_properties", d.PartitionBy != nil, "partition_by", d.ClusterBy != nil, "cluster_by")
		}
	case DatasetSink:
		err = d.checkSink(path, f)
	}
	if err != nil {
		return err
	}
	if d.Type != DatasetSink {
		if err := d.refuseFields(path, d.Format != "", "format", d.Options != nil, "options"); err != nil {
			return err
		}
	}
	return d.checkLayout(path)
}

func (d *Dataset) checkStreamingTable(path string, f *Function) error {
	if f == nil {
		return nil
	}
	if f.Kind != KindMap && f.Kind != KindStateful {
		return invalid(path+".function", "function %s of kind %s cannot fill a streaming table", f.Name, f.Kind)
	}
	if f.Inputs[0].Mode != ModeStream {
		return invalid(path+".function", "a streaming table reads a stream, and input 0 of %s is a batch", f.Name)
	}
	return nil
}

func (d *Dataset) checkView(path string, f *Function) error {
	if f == nil {
		return invalid(path+".function", "is required for a %s", d.Type)
	}
	if f.Kind == KindSnapshot || f.Kind == KindForeachBatch {
		return invalid(path+".function", "function %s of kind %s cannot fill a %s", f.Name, f.Kind, d.Type)
	}
	return nil
}

func (d *Dataset) checkSink(path string, f *Function) error {
	switch {
	case f == nil && d.Format == "":
		return invalid(path+".format", "is required for a sink without a function")
	case f != nil && d.Format != "":
		return invalid(path+".format", "stands beside function; a sink has one of them")
	case f != nil && f.Kind != KindForeachBatch:
		return invalid(path+".function", "a sink's function is of kind foreach_batch, and %s of kind %s", f.Name, f.Kind)
	}
	return d.refuseFields(path, d.Private, "private", d.TableProperties != nil, "table_properties", d.PartitionBy != nil, "partition_by",
		d.ClusterBy != nil, "cluster_by", d.Schema != nil, "schema", d.Expectations != nil, "expectations")
}

// refuseFields takes pairs of (is it set, its name).
func (d *Dataset) refuseFields(path string, pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i].(bool) {
			return invalid(fmt.Sprintf("%s.%s", path, pairs[i+1]), "a %s has none", d.Type)
		}
	}
	return nil
}

func (d *Dataset) checkLayout(path string) error {
	if len(d.PartitionBy) > 0 && len(d.ClusterBy) > 0 {
		return invalid(path+".cluster_by", "stands beside partition_by; a table has one of them")
	}
	if len(d.ClusterBy) > 4 {
		return invalid(path+".cluster_by", "%d columns are over the limit of 4", len(d.ClusterBy))
	}
	if d.Schema == nil {
		return nil
	}
	columns := map[string]bool{}
	for _, c := range d.Schema {
		columns[strings.ToLower(c.Name)] = true
	}
	for _, l := range []struct {
		key   string
		names []string
	}{{"partition_by", d.PartitionBy}, {"cluster_by", d.ClusterBy}} {
		for i, name := range l.names {
			if !columns[strings.ToLower(name)] {
				return invalid(index(path+"."+l.key, i), "the schema has no column %q", name)
			}
		}
	}
	return nil
}

func (f *Flow) check(path string, functions map[string]*Function) error {
	var fn *Function
	if f.Function != "" {
		if fn = functions[f.Function]; fn == nil {
			return invalid(path+".function", "the module has no function %q", f.Function)
		}
	}
	if f.Type == FlowAutoCDC {
		if f.Function != "" {
			return invalid(path+".function", "auto_cdc reads a source by name; declare the function as a temporary view and name that")
		}
		if f.Source == "" {
			return invalid(path+".source", "is required for auto_cdc")
		}
	} else if (f.Function == "") == (f.Source == "") {
		return invalid(path, "a flow of type %s has either a function or a source", f.Type)
	}
	if f.SourceOptions != nil && (f.Source == "" || f.Once || f.Type == FlowAutoCDCFromSnapshot || f.Type == FlowComplete) {
		return invalid(path+".source_options", "are for a source that is read as a stream")
	}
	if f.Once && f.Type != FlowAppend && f.Type != FlowAutoCDC {
		return invalid(path+".once", "is for append and auto_cdc")
	}
	if fn != nil {
		snapshot := f.Type == FlowAutoCDCFromSnapshot
		if snapshot != (fn.Kind == KindSnapshot) || fn.Kind == KindForeachBatch {
			return invalid(path+".function", "function %s of kind %s cannot be a flow of type %s", fn.Name, fn.Kind, f.Type)
		}
	}
	return f.checkCDC(path)
}

func (f *Flow) checkCDC(path string) error {
	cdc, snapshot := f.Type == FlowAutoCDC, f.Type == FlowAutoCDCFromSnapshot
	for _, field := range []struct {
		key      string
		set      bool
		snapshot bool // auto_cdc_from_snapshot takes it too
	}{
		{"keys", f.Keys != nil, true},
		{"stored_as_scd_type", f.StoredAsSCDType != 0, true},
		{"track_history_column_list", f.TrackHistoryColumnList != nil, true},
		{"track_history_except_column_list", f.TrackHistoryExceptColumnList != nil, true},
		{"sequence_by", f.SequenceBy != "", false},
		{"apply_as_deletes", f.ApplyAsDeletes != "", false},
		{"apply_as_truncates", f.ApplyAsTruncates != "", false},
		{"ignore_null_updates", f.IgnoreNullUpdates, false},
		{"ignore_null_updates_column_list", f.IgnoreNullUpdatesColumnList != nil, false},
		{"ignore_null_updates_except_column_list", f.IgnoreNullUpdatesExceptList != nil, false},
		{"ties_last_by", f.TiesLastBy != nil, false},
		{"column_list", f.ColumnList != nil, false},
		{"except_column_list", f.ExceptColumnList != nil, false},
	} {
		if field.set && !cdc && !(snapshot && field.snapshot) {
			return invalid(path+"."+field.key, "a flow of type %s has none", f.Type)
		}
	}
	if !cdc && !snapshot {
		return nil
	}
	for _, list := range []struct {
		key   string
		names []string
	}{
		{"column_list", f.ColumnList}, {"ignore_null_updates_column_list", f.IgnoreNullUpdatesColumnList}, {"ties_last_by", f.TiesLastBy},
	} {
		if list.names != nil && len(list.names) == 0 {
			return invalid(path+"."+list.key, "is empty")
		}
	}
	switch {
	case len(f.Keys) == 0:
		return invalid(path+".keys", "is required for %s", f.Type)
	case cdc && f.SequenceBy == "" && !strings.EqualFold(f.SourceOptions["readChangeFeed"], "true"):
		return invalid(path+".sequence_by", "is required for auto_cdc")
	case f.ignoreNullForms() > 1:
		return invalid(path, "of ignore_null_updates, ignore_null_updates_column_list and ignore_null_updates_except_column_list a flow has one")
	case f.ColumnList != nil && f.ExceptColumnList != nil:
		return invalid(path+".except_column_list", "stands beside column_list; a flow has one of them")
	case f.TrackHistoryColumnList != nil && f.TrackHistoryExceptColumnList != nil:
		return invalid(path+".track_history_except_column_list", "stands beside track_history_column_list; a flow has one of them")
	case f.StoredAsSCDType == 1 && f.TrackHistoryColumnList != nil:
		return invalid(path+".track_history_column_list", "needs stored_as_scd_type 2")
	case f.StoredAsSCDType == 1 && f.TrackHistoryExceptColumnList != nil:
		return invalid(path+".track_history_except_column_list", "needs stored_as_scd_type 2")
	case f.StoredAsSCDType == 2 && f.ApplyAsTruncates != "":
		return invalid(path+".apply_as_truncates", "goes only with stored_as_scd_type 1")
	}
	return nil
}

// ignoreNullForms counts the ways in which a flow says which nulls it ignores.
func (f *Flow) ignoreNullForms() (n int) {
	for _, set := range []bool{f.IgnoreNullUpdates, f.IgnoreNullUpdatesColumnList != nil, f.IgnoreNullUpdatesExceptList != nil} {
		if set {
			n++
		}
	}
	return n
}
