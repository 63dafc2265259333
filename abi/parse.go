package abi

import (
	"strings"

	"github.com/weir-data/weir/abi/coltype"
)

// ParseManifest reads and checks a manifest. Errors are *Error, with the path
// of the field.
func ParseManifest(data []byte) (*Manifest, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	o := root.object("")
	version, ok := o.number("abi")
	if !ok {
		o.refuse("abi", "is required")
	}
	if o.err == nil && version != Current {
		return nil, &Error{Code: CodeUnsupportedABI, Path: "abi", Message: "this host speaks version 1 of the ABI, the module another one"}
	}
	m.ABI = version
	m.Module = o.name("module")
	m.Version = o.text("version")
	m.SDK = o.text("sdk")
	o.list("functions", func(path string, item *node) error {
		f, err := parseFunction(path, item)
		m.Functions = append(m.Functions, f)
		return err
	})
	o.list("datasets", func(path string, item *node) error {
		d, err := parseDataset(path, item)
		m.Datasets = append(m.Datasets, d)
		return err
	})
	o.list("flows", func(path string, item *node) error {
		f, err := parseFlow(path, item)
		m.Flows = append(m.Flows, f)
		return err
	})
	if err := o.end(); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

func parseFunction(path string, n *node) (Function, error) {
	o := n.object(path)
	f := Function{
		Name:       o.name("name"),
		Kind:       o.choice("kind", "", KindMap, KindQuery, KindStateful, KindSnapshot, KindForeachBatch),
		Comment:    o.text("comment"),
		RowAligned: o.flag("row_aligned", false),
		Reuse:      o.flag("reuse", false),
		Conf:       o.names("conf"),
		Version:    o.text("version"),
	}
	o.list("inputs", func(path string, item *node) error {
		in, err := parseInput(path, item)
		f.Inputs = append(f.Inputs, in)
		return err
	})
	if p := o.typed("passthrough", 'o'); p != nil {
		f.Passthrough = Passthrough{}
		for _, m := range p.members {
			if m.value.kind != 's' {
				o.refuse(join("passthrough", m.key), "expected a text, found %s", kindName(m.value.kind))
				break
			}
			o.checkName(join("passthrough", m.key), m.key)
			o.checkName(join("passthrough", m.key), m.value.text)
			f.Passthrough = append(f.Passthrough, Rename{Input: m.key, Output: m.value.text})
		}
	}
	f.Output = parseColumns(o, "output")
	found := o.list("outputs", func(path string, item *node) error {
		oo := item.object(path)
		f.Outputs = append(f.Outputs, Output{Dataset: oo.name("dataset"), Mode: oo.choice("mode", "", OutputAppend, OutputMerge), Keys: oo.names("keys")})
		return oo.end()
	})
	if found && f.Outputs == nil {
		o.refuse("outputs", "is empty")
	}
	return f, o.end()
}

func parseInput(path string, n *node) (Input, error) {
	o := n.object(path)
	in := Input{
		Dataset: o.nameOpt("dataset"),
		Mode:    o.choice("mode", "", ModeStream, ModeBatch),
		Columns: o.names("columns"),
		Options: o.texts("options"),
	}
	if s := o.typed("source", 'o'); s != nil {
		so := s.object(join(path, "source"))
		in.Source = &Source{Format: so.name("format"), Path: so.text("path"), Options: so.texts("options")}
		if err := so.end(); err != nil {
			return in, err
		}
	}
	if o.err == nil && (in.Dataset == "") == (in.Source == nil) {
		return in, invalid(path, "an input has either a dataset or a source")
	}
	if o.err == nil && in.Options != nil && (in.Source != nil || in.Mode != ModeStream) {
		return in, invalid(join(path, "options"), "are for a dataset that is read as a stream; those of a source stand in it")
	}
	return in, o.end()
}

// parseColumns gives nil when the key is absent and a list that is not nil
// when it is there, since an empty output is not an undeclared one.
func parseColumns(o *object, key string) []Column {
	var out []Column
	seen := map[string]bool{}
	found := o.list(key, func(path string, item *node) error {
		co := item.object(path)
		c := Column{Name: co.name("name"), Type: co.required("type"), Nullable: co.flag("nullable", true), Comment: co.text("comment")}
		if err := co.end(); err != nil {
			return err
		}
		if _, err := coltype.Parse(c.Type); err != nil {
			return invalid(join(path, "type"), "%v", err)
		}
		if k := strings.ToLower(c.Name); seen[k] {
			return invalid(join(path, "name"), "%q stands twice", c.Name)
		} else {
			seen[k] = true
		}
		out = append(out, c)
		return nil
	})
	if found && out == nil {
		out = []Column{}
	}
	return out
}

func parseDataset(path string, n *node) (Dataset, error) {
	o := n.object(path)
	d := Dataset{
		Name:            o.name("name"),
		Type:            o.choice("type", "", DatasetStreamingTable, DatasetMaterializedView, DatasetTemporaryView, DatasetSink),
		Function:        o.nameOpt("function"),
		Comment:         o.text("comment"),
		Private:         o.flag("private", false),
		TableProperties: o.texts("table_properties"),
		PartitionBy:     o.names("partition_by"),
		ClusterBy:       o.names("cluster_by"),
		Schema:          parseColumns(o, "schema"),
		OnRowError:      o.choiceOpt("on_row_error", OnRowErrorFail, OnRowErrorSkip, OnRowErrorQuarantine),
		Format:          o.nameOpt("format"),
		Options:         o.texts("options"),
	}
	seen := map[string]bool{}
	o.list("expectations", func(path string, item *node) error {
		eo := item.object(path)
		e := Expectation{
			Name:        eo.name("name"),
			Condition:   eo.required("condition"),
			OnViolation: eo.choice("on_violation", OnViolationWarn, OnViolationWarn, OnViolationDrop, OnViolationFail, OnViolationQuarantine),
			Null:        eo.choice("null", NullViolates, NullViolates, NullPasses),
		}
		if err := eo.end(); err != nil {
			return err
		}
		if seen[e.Name] {
			return invalid(join(path, "name"), "%q stands twice", e.Name)
		}
		seen[e.Name] = true
		d.Expectations = append(d.Expectations, e)
		return nil
	})
	return d, o.end()
}

func parseFlow(path string, n *node) (Flow, error) {
	o := n.object(path)
	f := Flow{
		Name:                         o.nameOpt("name"),
		Type:                         o.choice("type", "", FlowAppend, FlowAutoCDC, FlowAutoCDCFromSnapshot, FlowComplete),
		Target:                       o.name("target"),
		Function:                     o.nameOpt("function"),
		Source:                       o.nameOpt("source"),
		SourceOptions:                o.texts("source_options"),
		Once:                         o.flag("once", false),
		OnRowError:                   o.choiceOpt("on_row_error", OnRowErrorFail, OnRowErrorSkip, OnRowErrorQuarantine),
		Keys:                         o.names("keys"),
		SequenceBy:                   o.text("sequence_by"),
		ApplyAsDeletes:               o.text("apply_as_deletes"),
		ApplyAsTruncates:             o.text("apply_as_truncates"),
		IgnoreNullUpdates:            o.flag("ignore_null_updates", false),
		IgnoreNullUpdatesColumnList:  o.names("ignore_null_updates_column_list"),
		IgnoreNullUpdatesExceptList:  o.names("ignore_null_updates_except_column_list"),
		ColumnList:                   o.names("column_list"),
		ExceptColumnList:             o.names("except_column_list"),
		TrackHistoryColumnList:       o.names("track_history_column_list"),
		TrackHistoryExceptColumnList: o.names("track_history_except_column_list"),
		TiesLastBy:                   o.names("ties_last_by"),
	}
	if n := o.take("stored_as_scd_type"); n != nil {
		switch {
		case (n.kind == 'n' || n.kind == 's') && n.text == "1":
			f.StoredAsSCDType = 1
		case (n.kind == 'n' || n.kind == 's') && n.text == "2":
			f.StoredAsSCDType = 2
		default:
			o.refuse("stored_as_scd_type", "is neither 1 nor 2")
		}
	} else if f.Type == FlowAutoCDC || f.Type == FlowAutoCDCFromSnapshot {
		f.StoredAsSCDType = 1
	}
	return f, o.end()
}
