package delta

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

// attempt is one try to write one version.
type attempt struct {
	base    *Snapshot
	version int64
	txnID   string
	data    []byte
	actions *commitActions
}

// plan makes the actions of the commit on top of base (nil: a new table).
func (t *Table) plan(c *Commit, base *Snapshot) (*attempt, error) {
	now := c.Timestamp
	if now.IsZero() {
		now = t.now()
	}
	a := &attempt{base: base, version: 0, txnID: uuid.NewString(), actions: &commitActions{}}
	if base != nil {
		a.version = base.version + 1
	}
	if err := t.planMetadata(c, base, a.actions, now); err != nil {
		return nil, err
	}
	protocol, metadata := effective(base, a.actions)
	if err := checkAdds(c, base, protocol, metadata); err != nil {
		return nil, err
	}
	if c.Txn != nil {
		txn := *c.Txn
		if txn.LastUpdated == nil {
			ms := now.UnixMilli()
			txn.LastUpdated = &ms
		}
		a.actions.txns = []Txn{txn}
	}
	if err := planRemoves(c, base, a.actions, metadata, now); err != nil {
		return nil, err
	}
	a.actions.adds = slices.Clone(c.Add) // the snapshot after the commit keeps them
	a.actions.info = commitInfo(c, base, a, now)
	if protocol.has("inCommitTimestamp") && strings.EqualFold(metadata.Configuration["delta.enableInCommitTimestamps"], "true") {
		ict := now.UnixMilli()
		if base != nil {
			ict = max(ict, base.time.UnixMilli()+1)
		}
		a.actions.info.InCommitTimestamp = &ict
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

// planMetadata adds the protocol, metaData and domain actions that the commit needs.
func (t *Table) planMetadata(c *Commit, base *Snapshot, out *commitActions, now time.Time) error {
	if base == nil {
		return t.planCreate(c, out, now)
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
	if c.Comment != "" {
		m.Description = c.Comment
	}
	if err := checkWritable(base.protocol, &m, next.schema); err != nil {
		return err
	}
	if !next.changes() && m.Name == base.metadata.Name && m.Description == base.metadata.Description {
		return nil
	}
	p, err := base.protocol.forTable(next.schema, c.Properties, false)
	if err != nil {
		return err
	}
	if p.MinReaderVersion != base.protocol.MinReaderVersion || p.MinWriterVersion != base.protocol.MinWriterVersion || !slices.Equal(p.names(), base.protocol.names()) {
		out.protocol = &p
	}
	out.metadata = &m
	return nil
}

// revise gives the definition of the table after the commit.
func (c *Commit) revise(base *Snapshot) (*revision, error) {
	r, err := revise(base, &demand{c.Schema, &c.Change, c.PartitionBy, c.ClusterBy, c.Properties, c.ReplaceAll})
	if err != nil {
		return nil, err
	}
	r.schema, err = withComments(r.schema, c.ColumnComments)
	return r, err
}

func (t *Table) planCreate(c *Commit, out *commitActions, now time.Time) error {
	next, err := c.revise(nil)
	if err != nil {
		return err
	}
	p, err := Protocol{MinReaderVersion: 1, MinWriterVersion: 2}.forColumns(next.schema).forTable(next.schema, c.Properties, len(c.ClusterBy) > 0)
	if err != nil {
		return err
	}
	created := now.UnixMilli()
	m := &Metadata{
		ID: uuid.NewString(), Name: c.Name, Description: c.Comment, Format: Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: schemaString(next.schema), PartitionColumns: append([]string{}, next.partitionBy...),
		Configuration: next.conf, CreatedTime: &created,
	}
	if len(next.clusterBy) > 0 {
		d, err := clusteringDomain(next.clusterBy)
		if err != nil {
			return err
		}
		out.domains = []DomainMetadata{d}
	}
	out.protocol, out.metadata = &p, m
	return checkWritable(&p, m, next.schema)
}

// clusteringDomain names the columns by which readers may expect the files to
// be clustered, as the files name them.
func clusteringDomain(columns [][]string) (DomainMetadata, error) {
	conf, err := json.Marshal(map[string]any{"clusteringColumns": columns})
	if err != nil {
		return DomainMetadata{}, fault.Wrap(err, "DELTA_COMMIT_FAILED", "clustering columns")
	}
	return DomainMetadata{Domain: "delta.clustering", Configuration: string(conf)}, nil
}

func checkPartitions(schema *structType, by []string) error {
	for i, name := range by {
		j := slices.IndexFunc(schema.fields, func(f *field) bool { return f.name == name })
		if j < 0 {
			return fault.New("DELTA_COLUMN_NOT_FOUND", "partition column %q is not in the schema", name)
		}
		if _, ok := schema.fields[j].typ.(*primitive); !ok {
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
func checkAdds(c *Commit, base *Snapshot, p *Protocol, m *Metadata) error {
	columns, err := storedPartitions(p, m)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(c.Add))
	for i := range c.Add {
		f := &c.Add[i]
		key, err := canonicalPath(f.Path)
		if err != nil {
			return err
		}
		if seen[key] {
			return fault.New("DELTA_COMMIT_FAILED", "file %s is added twice", f.Path)
		}
		seen[key] = true
		if base != nil && !c.ReplaceAll && f.DeletionVector == nil {
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

// planRemoves adds the remove actions for the files that the commit takes out.
func planRemoves(c *Commit, base *Snapshot, out *commitActions, m *Metadata, now time.Time) error {
	var gone []AddFile
	switch {
	case base == nil:
		if len(c.Remove) > 0 {
			return fault.New("DELTA_COMMIT_FAILED", "a new table has no files to remove")
		}
		return nil
	case c.ReplaceAll:
		base.files.each(func(_ string, f *AddFile) { gone = append(gone, *f) })
		sortFiles(gone)
		// A file that the commit adds again is replaced in place.
		kept := map[string]bool{}
		for i := range c.Add {
			kept[c.Add[i].Path] = true
		}
		gone = slices.DeleteFunc(gone, func(f AddFile) bool { return f.DeletionVector == nil && kept[f.Path] })
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
	// Files of a checkpoint do not tell whether they changed data; the commit
	// does: it only rearranges rows when all that it adds says so.
	change := c.ReplaceAll || len(c.Add) == 0 || slices.ContainsFunc(c.Add, func(f AddFile) bool { return f.DataChange })
	for i := range gone {
		out.removes = append(out.removes, gone[i].removal(now.UnixMilli(), change))
	}
	if change && len(gone) > 0 && strings.EqualFold(m.Configuration["delta.appendOnly"], "true") {
		return fault.New("DELTA_CANNOT_MODIFY_APPEND_ONLY", "the table is append-only (property delta.appendOnly)")
	}
	return nil
}

func commitInfo(c *Commit, base *Snapshot, a *attempt, now time.Time) *CommitInfo {
	blind := len(a.actions.removes) == 0
	info := &CommitInfo{
		Timestamp: now.UnixMilli(), Operation: c.Operation, OperationParameters: map[string]any{}, IsolationLevel: "WriteSerializable",
		IsBlindAppend: &blind, UserMetadata: c.UserMetadata, EngineInfo: c.EngineInfo, TxnID: a.txnID,
	}
	if info.Operation == "" {
		info.Operation = "WRITE"
	}
	if base != nil {
		v := base.version
		info.ReadVersion = &v
	}
	// Spark reads the parameters and metrics as a map of strings.
	for k, v := range c.Parameters {
		if s, ok := v.(string); ok {
			info.OperationParameters[k] = s
		} else if raw, err := json.Marshal(v); err == nil {
			info.OperationParameters[k] = string(raw)
		}
	}
	var rows, size int64
	counted := true
	for i := range c.Add {
		n, ok := c.Add[i].NumRecords()
		counted = counted && ok
		rows += n
		size += c.Add[i].Size
	}
	info.OperationMetrics = map[string]any{
		"numFiles": itoa(int64(len(c.Add))), "numOutputBytes": itoa(size), "numRemovedFiles": itoa(int64(len(a.actions.removes))),
	}
	if counted {
		info.OperationMetrics["numOutputRows"] = itoa(rows)
	}
	return info
}
