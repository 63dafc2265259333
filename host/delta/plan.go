package delta

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

// attempt is one try to write one version.
type attempt struct {
	base    *Snapshot
	version int64
	txnID   string
	now     time.Time
	data    []byte
	actions *commitActions
	deleted struct{ rows, vectorsAdded, vectorsUpdated, vectorsRemoved int64 }
}

// plan makes the actions of the commit on top of base (nil: a new table).
func (x *transaction) plan(ctx context.Context, base *Snapshot) (*attempt, error) {
	c := x.commit
	a := &attempt{base: base, version: 0, txnID: uuid.NewString(), now: c.Timestamp, actions: &commitActions{}}
	if a.now.IsZero() {
		a.now = x.table.now()
	}
	if base != nil {
		a.version = base.version + 1
	}
	if err := x.planMetadata(a); err != nil {
		return nil, err
	}
	protocol, metadata := effective(base, a.actions)
	if err := x.planFiles(ctx, a, protocol, metadata); err != nil {
		return nil, err
	}
	a.actions.txns = c.txns(a.now)
	if err := c.planDomains(a); err != nil {
		return nil, err
	}
	if err := x.trackRows(ctx, a, protocol, metadata); err != nil {
		return nil, err
	}
	a.actions.info = x.commitInfo(a)
	planTimestamp(a, protocol, metadata)
	if rowTracking(protocol, metadata) == trackingEnabled {
		// No operation of ours copies or updates a row without its id.
		a.actions.info.Tags = map[string]string{"delta.rowTracking.preserved": "true"}
	}
	var err error
	a.data, err = a.actions.encode()
	return a, err
}

func effective(base *Snapshot, a *commitActions) (*Protocol, *Metadata) {
	p, m := a.protocol, a.metadata
	if p == nil {
		p = base.protocol
	}
	if m == nil {
		m = base.metadata
	}
	return p, m
}

// planFiles adds the add, remove and cdc actions.
func (x *transaction) planFiles(ctx context.Context, a *attempt, p *Protocol, m *Metadata) error {
	c := x.commit
	if err := x.checkAdds(a.base, p, m); err != nil {
		return err
	}
	if err := x.planRemoves(a); err != nil {
		return err
	}
	a.actions.adds = slices.Clone(c.Add) // the snapshot after the commit keeps them
	if c.Rearranges {
		for i := range a.actions.adds {
			a.actions.adds[i].DataChange = false
		}
	}
	if err := x.planDeletes(ctx, a, p, m); err != nil {
		return err
	}
	if len(c.ChangeData) > 0 && !isTrue(m, "delta.enableChangeDataFeed") {
		return fault.New("DELTA_COMMIT_FAILED", "the commit has change data, but the table has no change data feed").
			WithHint("Set the property delta.enableChangeDataFeed to true")
	}
	a.actions.cdc = slices.Clone(c.ChangeData)
	for i := range a.actions.cdc {
		a.actions.cdc[i].DataChange = false
	}
	changes := slices.ContainsFunc(a.actions.removes, func(r RemoveFile) bool { return r.DataChange })
	if changes && isTrue(m, "delta.appendOnly") {
		return fault.New("DELTA_CANNOT_MODIFY_APPEND_ONLY", "%s: the table is append-only", c.operation()).
			WithHint("Set the property delta.appendOnly to false to change or remove rows")
	}
	return nil
}

func (c *Commit) operation() string {
	if c.Operation == "" {
		return "WRITE"
	}
	return c.Operation
}

// changesMetadata tells whether the commit may change the metaData action.
func (c *Commit) changesMetadata() bool {
	return c.Schema != nil || c.PartitionBy != nil || len(c.Properties) > 0 || len(c.Unset) > 0 || c.Name != "" || c.Comment != "" || c.NoComment || len(c.ColumnComments) > 0 || !c.Change.empty()
}

// planMetadata adds the protocol, metaData and clustering actions that the commit needs.
func (x *transaction) planMetadata(a *attempt) error {
	c, base, out := x.commit, a.base, a.actions
	if base == nil {
		return c.planCreate(a)
	}
	if c.restore != nil {
		return planRestored(c, base, out)
	}
	next, err := c.revise(base)
	if err != nil {
		return err
	}
	m := *base.metadata
	m.SchemaString, m.PartitionColumns, m.Configuration = schemaString(next.schema), next.partitionBy, next.conf
	if c.Name != "" {
		m.Name = c.Name
	}
	if c.Comment != "" || c.NoComment {
		m.Description = c.Comment
	}
	clustered := !slices.EqualFunc(next.clusterBy, base.clusterPaths(), slices.Equal[[]string])
	if clustered {
		if err := a.cluster(next.clusterBy); err != nil {
			return err
		}
	}
	p, err := c.raise(*base.protocol, next.schema, clustered)
	if err != nil {
		return err
	}
	nameRowColumns(&p, &m)
	if err := checkWritable(&p, &m, next.schema); err != nil {
		return err
	}
	if p.MinReaderVersion != base.protocol.MinReaderVersion || p.MinWriterVersion != base.protocol.MinWriterVersion || !slices.Equal(p.names(), base.protocol.names()) {
		out.protocol = &p
	}
	if next.changes() || m.Name != base.metadata.Name || m.Description != base.metadata.Description {
		out.metadata = &m
	}
	return nil
}

// raise gives the protocol that the table needs after the commit.
func (c *Commit) raise(p Protocol, schema *structType, clustered bool) (Protocol, error) {
	if len(c.Domains) > 0 {
		p = p.need("domainMetadata")
	}
	return p.forColumns(schema).forTable(schema, c.Properties, clustered)
}

// revise gives the definition of the table after the commit.
func (c *Commit) revise(base *Snapshot) (*revision, error) {
	r, err := revise(base, &demand{c.Schema, &c.Change, c.PartitionBy, c.ClusterBy, c.Properties, c.Unset, c.ReplaceAll, c.Redefines})
	if err != nil {
		return nil, err
	}
	r.schema, err = withComments(r.schema, c.ColumnComments)
	return r, err
}

func (c *Commit) planCreate(a *attempt) error {
	next, err := c.revise(nil)
	if err != nil {
		return err
	}
	p, err := c.raise(Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, next.schema, len(next.clusterBy) > 0)
	if err != nil {
		return err
	}
	created := a.now.UnixMilli()
	m := &Metadata{
		ID: uuid.NewString(), Name: c.Name, Description: c.Comment, Format: Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: schemaString(next.schema), PartitionColumns: append([]string{}, next.partitionBy...),
		Configuration: next.conf, CreatedTime: &created,
	}
	nameRowColumns(&p, m)
	if len(next.clusterBy) > 0 {
		if err := a.cluster(next.clusterBy); err != nil {
			return err
		}
	}
	a.actions.protocol, a.actions.metadata = &p, m
	return checkWritable(&p, m, next.schema)
}

func checkPartitions(schema *structType, by []string) error {
	for i, name := range by {
		j := slices.IndexFunc(schema.fields, func(f *field) bool { return f.name == name })
		if j < 0 {
			return fault.New("DELTA_COLUMN_NOT_FOUND", "partition column %q is not in the schema", name)
		}
		if p, ok := schema.fields[j].typ.(*primitive); !ok || isVariant(p) || isVoid(p) {
			return fault.New("DELTA_INVALID_PARTITION_COLUMN_TYPE", "column %q of type %s cannot partition a table", name, schema.fields[j].typ.sparkName())
		}
		if slices.Contains(by[:i], name) {
			return fault.New("DELTA_DUPLICATE_COLUMNS_FOUND", "partition column %q appears twice", name)
		}
	}
	if len(by) > 0 && len(by) >= len(schema.fields) {
		return fault.New("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "a table needs a column that does not partition it")
	}
	return nil
}

// checkAdds refuses files that do not fit the table they are added to.
func (x *transaction) checkAdds(base *Snapshot, p *Protocol, m *Metadata) error {
	c := x.commit
	columns, err := storedPartitions(p, m)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(c.Add))
	for i := range c.Add {
		f := &c.Add[i]
		path, err := canonicalPath(f.Path)
		if err != nil {
			return err
		}
		if seen[path] || x.deletes[path] != nil {
			return fault.New("DELTA_COMMIT_FAILED", "file %s is added twice", f.Path)
		}
		seen[path] = true
		if base != nil && !c.ReplaceAll {
			key, err := fileKey(f.Path, f.DeletionVector)
			if err != nil {
				return err
			}
			if _, ok := base.files.get(key); ok {
				return fault.New("DELTA_COMMIT_FAILED", "file %s is in the table already", f.Path).
					WithHint("Two writes must not share a name")
			}
		}
		if len(f.PartitionValues) != len(m.PartitionColumns) {
			return fault.New("DELTA_COMMIT_FAILED", "file %s was written for other partition columns than %v", f.Path, m.PartitionColumns)
		}
		for _, c := range columns {
			if _, ok := f.PartitionValues[c]; !ok {
				return fault.New("DELTA_COMMIT_FAILED", "file %s has no value of partition column %q", f.Path, c)
			}
		}
	}
	return nil
}

// planRemoves adds the remove actions for the files that the commit takes out as a whole.
func (x *transaction) planRemoves(a *attempt) error {
	c, base := x.commit, a.base
	var gone []AddFile
	switch {
	case base == nil:
		if len(c.Remove) > 0 {
			return fault.New("DELTA_COMMIT_FAILED", "a new table has no files to remove")
		}
	case c.ReplaceAll:
		// A file that the commit adds again is replaced in place.
		kept := map[string]bool{}
		for i := range c.Add {
			key, err := fileKey(c.Add[i].Path, c.Add[i].DeletionVector)
			if err != nil {
				return err
			}
			kept[key] = true
		}
		base.files.each(func(key string, f *AddFile) {
			if !kept[key] {
				gone = append(gone, *f)
			}
		})
		sortFiles(gone)
	default:
		for i := range c.Remove {
			key, err := fileKey(c.Remove[i].Path, c.Remove[i].DeletionVector)
			if err != nil {
				return err
			}
			live, ok := base.files.get(key)
			if !ok {
				return fault.New("DELTA_CONCURRENT_DELETE_DELETE", "file %s is not in version %d", c.Remove[i].Path, base.version).Retryable()
			}
			gone = append(gone, *live)
		}
	}
	for i := range gone {
		a.actions.removes = append(a.actions.removes, gone[i].removal(a.now.UnixMilli(), !c.Rearranges))
	}
	return nil
}
