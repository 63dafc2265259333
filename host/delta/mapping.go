package delta

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

// Column mapping gives every field of a schema an id and a physical name that
// outlive its name. Files, statistics and partition values go by those.

const (
	mappingModeKey = "delta.columnMapping.mode"
	maxColumnIDKey = "delta.columnMapping.maxColumnId"
)

// columnNames is the namespace of physical names. They follow from id and path
// alone: a writer of files and the commit that comes later must agree on them.
var columnNames = uuid.MustParse("0d8f6a52-9b1e-5b5c-8c59-6f0c7a3b1e44")

// mapped tells whether files go by physical names.
func (r *revision) mapped() bool { return r.mode != "none" }

// setMode follows a change of the mode of column mapping. Old files have no
// field ids, so that a table can come to the mode "name" only.
func (r *revision) setMode(d *demand) error {
	mode, ok := d.properties[mappingModeKey]
	if !ok {
		if !r.mapped() || !slices.Contains(d.unset, mappingModeKey) {
			return nil
		}
		mode = "none"
	}
	mode = strings.ToLower(mode)
	switch {
	case mode != "none" && mode != "name" && mode != "id":
		return fault.New("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", "property %s = %s: there are none, name and id", mappingModeKey, mode)
	case mode == r.mode:
	case r.base == nil:
		r.mode = mode
	case r.mode == "none" && mode == "name":
		r.mode = mode
		r.schema = cloneType(r.schema).(*structType)
		return r.keepNames()
	default:
		return fault.New("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", "property %s cannot change from %s to %s", mappingModeKey, r.mode, mode).
			WithHint("A table that is there can only come from none to name")
	}
	r.conf[mappingModeKey] = mode
	return nil
}

// keepNames makes the names that files have already the physical ones.
func (r *revision) keepNames() error {
	eachField(r.schema, nil, func(f *field, _ []string) {
		f.meta = maps.Clone(f.meta)
		f.setMeta(physicalNameKey, f.name)
		delete(f.meta, fieldIDKey)
	})
	r.conf[mappingModeKey] = r.mode
	return r.nameColumns()
}

// nameColumns gives fields that lack them an id and a physical name.
func (r *revision) nameColumns() error {
	last := int64(0)
	if n, err := strconv.ParseInt(r.conf[maxColumnIDKey], 10, 64); err == nil {
		last = n
	}
	taken := map[string]bool{}
	unnamed := false
	eachField(r.schema, nil, func(f *field, _ []string) {
		last = max(last, int64(f.fieldID()))
		taken[f.metaString(physicalNameKey)] = true
		unnamed = unnamed || !f.named()
	})
	if !unnamed {
		return nil
	}
	r.schema = cloneType(r.schema).(*structType)
	eachField(r.schema, nil, func(f *field, path []string) {
		if f.named() {
			return
		}
		f.meta = maps.Clone(f.meta)
		if f.meta == nil {
			f.meta = map[string]json.RawMessage{}
		}
		if f.fieldID() < 0 {
			last++
			f.meta[fieldIDKey] = json.RawMessage(itoa(last))
		}
		if f.metaString(physicalNameKey) != "" {
			return
		}
		seed := itoa(int64(f.fieldID())) + "/" + strings.Join(path, "/")
		name := "col-" + uuid.NewSHA1(columnNames, []byte(seed)).String()
		for taken[name] {
			name = "col-" + uuid.NewSHA1(columnNames, []byte(name)).String()
		}
		taken[name] = true
		f.setMeta(physicalNameKey, name)
	})
	if last > math.MaxInt32 {
		return fault.New("DELTA_INVALID_SCHEMA", "the column ids of the table are used up")
	}
	r.conf[maxColumnIDKey] = itoa(last)
	return nil
}

// keepMaxColumnID gives an older version's properties for a restore: ids that
// were given since stay used, so that no column to come shares one with files
// of the versions left behind.
func keepMaxColumnID(restored, now map[string]string) map[string]string {
	last, ok := now[maxColumnIDKey]
	if !ok {
		return restored
	}
	if restored = maps.Clone(restored); restored == nil {
		restored = map[string]string{}
	}
	restored[maxColumnIDKey] = last
	return restored
}

// checkNamed refuses to write a table with column mapping whose fields lack an
// id or a physical name, or share one: whatever we chose, its files would be read wrong.
func (s *Snapshot) checkNamed() (err error) {
	if s.mapping == "none" {
		return nil
	}
	ids, names := map[int]bool{}, map[string]bool{}
	eachField(s.schema, nil, func(f *field, path []string) {
		stored := strings.Join(path[:len(path)-1], "\x00") + "\x00" + f.physicalName()
		if err == nil && (!f.named() || ids[f.fieldID()] || names[stored]) {
			err = invalidSchema("column %q has no column mapping id and physical name of its own", strings.Join(path, "."))
		}
		ids[f.fieldID()], names[stored] = true, true
	})
	return err
}

func (f *field) named() bool { return f.fieldID() >= 0 && f.metaString(physicalNameKey) != "" }

// eachField visits every field, an outer one before those in it, with the names on its path.
func eachField(t dataType, path []string, visit func(f *field, path []string)) {
	at := path[:len(path):len(path)] // what is appended goes to a copy
	switch t := t.(type) {
	case *structType:
		for _, f := range t.fields {
			visit(f, append(at, f.name))
			eachField(f.typ, append(at, f.name), visit)
		}
	case *arrayType:
		eachField(t.elem, append(at, "element"), visit)
	case *mapType:
		eachField(t.key, append(at, "key"), visit)
		eachField(t.value, append(at, "value"), visit)
	}
}

// storedName is the name of the field in files, statistics and partition values.
func (f *field) storedName(mapped bool) string {
	if mapped {
		return f.physicalName()
	}
	return f.name
}

// storedNames gives the names that partition values have for columns.
func storedNames(schema *structType, columns []string, mapped bool) []string {
	out := make([]string, len(columns))
	for i, name := range columns {
		out[i] = name
		if f := schema.find(name); f != nil {
			out[i] = f.storedName(mapped)
		}
	}
	return out
}

// storedPartitions gives the keys that partition values have in the table.
func storedPartitions(p *Protocol, m *Metadata) ([]string, error) {
	mode, err := mappingMode(p, m)
	if err != nil || mode == "none" || len(m.PartitionColumns) == 0 {
		return m.PartitionColumns, err
	}
	schema, err := parseSchema(m.SchemaString)
	if err != nil {
		return nil, err
	}
	return storedNames(schema, m.PartitionColumns, true), nil
}

// storedPath gives the names that files have for a path of struct fields, nil when it leads nowhere.
func storedPath(schema *structType, path []string, mapped bool) []string {
	out := make([]string, len(path))
	for i := range path {
		f := schema.leaf(path[:i+1])
		if f == nil {
			return nil
		}
		out[i] = f.storedName(mapped)
	}
	return out
}

// namedPath gives the names of the schema for a path that files have, nil when it leads nowhere.
func namedPath(schema *structType, stored []string, mapped bool) []string {
	var out []string
	for at := schema; len(out) < len(stored); {
		i := slices.IndexFunc(at.fields, func(f *field) bool { return f.storedName(mapped) == stored[len(out)] })
		if i < 0 {
			return nil
		}
		f := at.fields[i]
		out = append(out, f.name)
		next, ok := f.typ.(*structType)
		if !ok && len(out) < len(stored) {
			return nil
		}
		at = next
	}
	return out
}

// clustersBelow tells whether a clustering column is the field of the path or lies in it.
func (r *revision) clustersBelow(stored []string) bool {
	return slices.ContainsFunc(r.clusterBy, func(c []string) bool {
		return len(c) >= len(stored) && slices.Equal(c[:len(stored)], stored)
	})
}
