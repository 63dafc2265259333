package delta

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// revision is the definition of a table as a commit will leave it. Writers of
// data files and the commit that adds them derive it alike, so that both know
// the physical names of new columns.
type revision struct {
	base        *Snapshot // nil for a new table
	schema      *structType
	partitionBy []string
	conf        map[string]string
	mode        string     // of column mapping
	clusterBy   [][]string // the clustering columns, by the names that files have
}

// demand is what a commit asks of the definition.
type demand struct {
	schema      *arrow.Schema
	change      *SchemaChange
	partitionBy []string // nil keeps
	clusterBy   []string // dotted; nil keeps
	properties  map[string]string
	unset       []string
	replace     bool
	redefine    bool
}

// keptByTable are the properties that the table keeps for itself: others would
// make files, ids or times mean something else.
var keptByTable = []string{maxColumnIDKey, rowIDNameKey, rowCommitVersionNameKey, enablementVersionKey, enablementTimeKey}

// checkProperties refuses changes of what the table keeps for itself.
func (d *demand) checkProperties(base *Snapshot) error {
	for _, k := range keptByTable {
		v, set := d.properties[k]
		same := set && base != nil && base.metadata.Configuration[k] == v
		if set && !same || slices.Contains(d.unset, k) {
			return fault.New("DELTA_INVALID_PROPERTY", "property %s is kept by the table itself", k)
		}
	}
	if slices.Contains(d.unset, mappingModeKey) && base != nil && base.mapping != "none" {
		return fault.New("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", "property %s cannot be taken away: the files go by physical names", mappingModeKey)
	}
	return nil
}

// revise gives the definition after the commit.
func revise(base *Snapshot, d *demand) (*revision, error) {
	if err := d.checkProperties(base); err != nil {
		return nil, err
	}
	r := &revision{base: base, conf: map[string]string{}, mode: "none"}
	if base == nil {
		return r, r.create(d)
	}
	maps.Copy(r.conf, base.metadata.Configuration)
	for _, k := range d.unset {
		delete(r.conf, k)
	}
	r.setProperties(d)
	r.schema, r.partitionBy, r.mode = base.schema, base.metadata.PartitionColumns, base.mapping
	r.clusterBy = base.clusterPaths()
	if err := base.checkNamed(); err != nil {
		return nil, err
	}
	if err := r.setMode(d); err != nil {
		return nil, err
	}
	if d.change != nil {
		if err := d.change.apply(r); err != nil {
			return nil, err
		}
	}
	if d.schema != nil {
		var err error
		if r.schema, err = r.evolve(d.schema, d.replace, d.redefine); err != nil {
			return nil, err
		}
	}
	if d.partitionBy != nil && !slices.Equal(d.partitionBy, r.partitionBy) {
		if !d.replace {
			return nil, fault.New("DELTA_PARTITION_COLUMNS_CHANGED", "the table is partitioned by %v, not by %v", r.partitionBy, d.partitionBy).
				WithHint("Only a commit that replaces all rows can change that")
		}
		r.partitionBy = d.partitionBy
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r, r.recluster(d)
}

// setProperties takes over the properties that are kept.
func (r *revision) setProperties(d *demand) {
	for k, v := range d.properties {
		if !ofProtocol(k) {
			r.conf[k] = v
		}
	}
}

// recluster changes the clustering columns of a table, or ends the clustering
// when all columns are replaced by ones that lack them.
func (r *revision) recluster(d *demand) error {
	if d.clusterBy != nil {
		r.clusterBy = nil
		return r.cluster(d.clusterBy)
	}
	lost := func(stored []string) bool { return namedPath(r.schema, stored, r.mapped()) == nil }
	if d.replace && slices.ContainsFunc(r.clusterBy, lost) {
		r.clusterBy = nil
	}
	return nil
}

// create makes the definition of a new table.
func (r *revision) create(d *demand) (err error) {
	if d.schema == nil || d.schema.NumFields() == 0 {
		return fault.New("DELTA_EMPTY_SCHEMA", "a new table needs columns")
	}
	r.setProperties(d)
	r.partitionBy = d.partitionBy
	if r.schema, err = fromArrow(d.schema.Fields(), ""); err != nil {
		return err
	}
	if err := r.setMode(d); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	return r.cluster(d.clusterBy)
}

// cluster sets the clustering columns.
func (r *revision) cluster(by []string) error {
	if len(by) > 0 && len(r.partitionBy) > 0 {
		return fault.New("DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "a table cannot have both")
	}
	for _, name := range by {
		stored := storedPath(r.schema, strings.Split(name, "."), r.mapped())
		if stored == nil {
			return fault.New("DELTA_COLUMN_NOT_FOUND", "clustering column %q is not in the schema", name)
		}
		if t, ok := r.schema.leaf(strings.Split(name, ".")).typ.(*primitive); !ok || newBounds(t.arrow) == nil {
			return fault.New("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "column %q cannot cluster a table: its type has no statistics", name)
		}
		r.clusterBy = append(r.clusterBy, stored)
	}
	return nil
}

// finish gives ids and physical names to what has none, and checks the partitioning.
func (r *revision) finish() error {
	if err := checkPartitions(r.schema, r.partitionBy); err != nil {
		return err
	}
	if r.mapped() {
		return r.nameColumns()
	}
	return nil
}

// changes tells whether the definition differs from that of the table.
func (r *revision) changes() bool {
	m := r.base.metadata
	return schemaString(r.schema) != schemaString(r.base.schema) || !slices.Equal(r.partitionBy, m.PartitionColumns) || !maps.Equal(r.conf, m.Configuration)
}
