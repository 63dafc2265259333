package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var (
	fpBeforePut = failpoint.New("delta.before_put")
	fpAfterPut  = failpoint.New("delta.after_put")
)

// Commit is one change of the table, made as a whole or not at all.
type Commit struct {
	// Read is the snapshot that the writer saw; nil says that the table must not exist yet.
	Read *Snapshot
	// Operation and Parameters tell what was done, such as "STREAMING UPDATE".
	Operation    string
	Parameters   map[string]any
	EngineInfo   string
	UserMetadata string

	// Schema holds the columns of a new table, or those of an old one and the
	// added ones; nil keeps what there is. With ReplaceAll it may be any schema.
	Schema *arrow.Schema
	// PartitionBy is for a new table, or one whose rows are all replaced; nil keeps.
	PartitionBy []string
	// ClusterBy is for a new table.
	ClusterBy []string
	// Properties are set on top of those there are.
	Properties map[string]string
	// Name and Comment of the table; empty keeps.
	Name    string
	Comment string
	// ColumnComments are set on top of those there are, by column.
	ColumnComments map[string]string

	Add    []AddFile
	Remove []AddFile
	// ReplaceAll removes every live file of the version that the commit lands on.
	ReplaceAll bool
	// Txn makes the commit happen once: if the table has this version of the
	// application or a later one, Commit writes nothing and fails with *AlreadyCommitted.
	Txn *Txn
	// Timestamp is when the commit says it was made; zero is now.
	Timestamp time.Time
}

// Result tells where a commit landed.
type Result struct {
	Version int64
	// CheckpointError is set when the commit stands but the checkpoint that was
	// due could not be written. The next one that is due makes up for it.
	CheckpointError error
}

// AlreadyCommitted says that the table has the transaction, or a later one of the same application.
type AlreadyCommitted struct {
	AppID string
	// Version is the transaction version that the table has.
	Version int64
	// TableVersion is the version of the table that told so.
	TableVersion int64
}

func (e *AlreadyCommitted) Error() string {
	return fmt.Sprintf("[DELTA_ALREADY_COMMITTED] application %q is at transaction %d in table version %d", e.AppID, e.Version, e.TableVersion)
}

// CodeName gives the code of the error.
func (e *AlreadyCommitted) CodeName() string { return "DELTA_ALREADY_COMMITTED" }

// Commit writes one version. A lost race is tried again on the winner's version
// as long as the winner did not touch what this commit depends on.
func (t *Table) Commit(ctx context.Context, c Commit) (Result, error) {
	base, err := t.baseOf(ctx, &c)
	if err != nil {
		return Result{}, err
	}
	seen := c.Read
	for {
		if err := checkTxn(base, c.Txn); err != nil {
			return Result{}, err
		}
		if seen != nil && base.version > seen.version {
			if err := t.checkConflicts(ctx, &c, seen.version, base.version); err != nil {
				return Result{}, err
			}
			seen = base
		}
		attempt, err := t.plan(&c, base)
		if err != nil {
			return Result{}, err
		}
		won, err := t.put(ctx, attempt)
		if err != nil {
			return Result{}, err
		}
		if won {
			return t.landed(ctx, attempt), nil
		}
		if base, err = t.lost(ctx, &c, attempt.version); err != nil {
			return Result{}, err
		}
	}
}

// baseOf gives the snapshot to commit on: the newest, or nil for a new table.
// It is read anew even when the writer has one: the version after a stale one
// may have been cleaned up and its name be free again.
func (t *Table) baseOf(ctx context.Context, c *Commit) (*Snapshot, error) {
	base, err := t.Snapshot(ctx)
	if c.Read == nil {
		switch {
		case fault.Is(err, "DELTA_TABLE_NOT_FOUND"):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return nil, t.exists(c, base)
	}
	if err != nil {
		return nil, err
	}
	if base.version < c.Read.version || base.metadata.ID != c.Read.metadata.ID {
		return nil, fault.New("DELTA_TABLE_REPLACED", "the table is not the one that was read: id %s at version %d, read id %s at version %d",
			base.metadata.ID, base.version, c.Read.metadata.ID, c.Read.version)
	}
	return base, nil
}

// exists is the failure of a creation that comes too late; when it was our own
// transaction that made the table, it says so.
func (t *Table) exists(c *Commit, base *Snapshot) error {
	if err := checkTxn(base, c.Txn); err != nil {
		return err
	}
	return fault.New("DELTA_TABLE_ALREADY_EXISTS", "the table exists, at version %d", base.version)
}

func (t *Table) lost(ctx context.Context, c *Commit, version int64) (*Snapshot, error) {
	base, err := t.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if c.Read == nil {
		return nil, t.exists(c, base)
	}
	if base.version < version {
		return nil, fault.New("DELTA_COMMIT_FAILED", "version %d is taken but cannot be read", version).Retryable()
	}
	return base, nil
}

func checkTxn(base *Snapshot, txn *Txn) error {
	if base == nil || txn == nil {
		return nil
	}
	if have, ok := base.Txn(txn.AppID); ok && have >= txn.Version {
		return &AlreadyCommitted{AppID: txn.AppID, Version: have, TableVersion: base.version}
	}
	return nil
}

// checkConflicts looks at what was committed in (from, to] since the writer read the table.
func (t *Table) checkConflicts(ctx context.Context, c *Commit, from, to int64) error {
	removed := map[string]bool{}
	for i := range c.Remove {
		key, err := fileKey(c.Remove[i].Path, c.Remove[i].DeletionVector)
		if err != nil {
			return err
		}
		removed[key] = true
	}
	for e, err := range t.Log(ctx, from+1, to) {
		if err != nil {
			return err
		}
		conflict := func(code, format string, args ...any) error {
			return fault.New(code, "version %d, committed meanwhile, %s", e.Version, fmt.Sprintf(format, args...)).
				WithHint("Read the table again and redo the change").Retryable()
		}
		switch {
		case e.Protocol != nil:
			return conflict("DELTA_PROTOCOL_CHANGED", "changed the protocol")
		case e.Metadata != nil:
			return conflict("DELTA_METADATA_CHANGED", "changed schema or properties")
		}
		if c.Txn != nil && slices.ContainsFunc(e.Txns, func(x Txn) bool { return x.AppID == c.Txn.AppID }) {
			return conflict("DELTA_CONCURRENT_TRANSACTION", "is of the same application %q", c.Txn.AppID)
		}
		if len(removed) == 0 {
			continue // a blind append, or a replacement of whatever there is
		}
		for i := range e.Removes {
			if key, err := fileKey(e.Removes[i].Path, e.Removes[i].DeletionVector); err != nil {
				return err
			} else if removed[key] {
				return conflict("DELTA_CONCURRENT_DELETE_DELETE", "removed file %s, too", e.Removes[i].Path)
			}
		}
		blind := e.CommitInfo != nil && e.CommitInfo.IsBlindAppend != nil && *e.CommitInfo.IsBlindAppend
		if !blind && slices.ContainsFunc(e.Adds, func(f AddFile) bool { return f.DataChange }) {
			return conflict("DELTA_CONCURRENT_APPEND", "added rows that depend on what it read")
		}
	}
	return nil
}

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
	if err := checkAdds(c.Add, metadata); err != nil {
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
	a.actions.adds = c.Add
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
	m := *base.metadata
	schema, changed, err := c.nextSchema(base)
	if err != nil {
		return err
	}
	if c.PartitionBy != nil && !slices.Equal(c.PartitionBy, m.PartitionColumns) {
		if !c.ReplaceAll {
			return fault.New("DELTA_PARTITION_COLUMNS_CHANGED", "the table is partitioned by %v, not by %v", m.PartitionColumns, c.PartitionBy).
				WithHint("Only a commit that replaces all rows can change that")
		}
		m.PartitionColumns, changed = c.PartitionBy, true
	}
	if err := checkPartitions(schema, m.PartitionColumns); err != nil {
		return err
	}
	m.Configuration = maps.Clone(m.Configuration)
	if m.Configuration == nil {
		m.Configuration = map[string]string{}
	}
	for k, v := range c.Properties {
		if old, ok := m.Configuration[k]; !ok || old != v {
			m.Configuration[k], changed = v, true
		}
	}
	if c.Name != "" && c.Name != m.Name {
		m.Name, changed = c.Name, true
	}
	if c.Comment != "" && c.Comment != m.Description {
		m.Description, changed = c.Comment, true
	}
	if err := checkWritable(base.protocol, &m, schema); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	p, err := base.protocol.forTable(schema, c.Properties, false)
	if err != nil {
		return err
	}
	if p.MinReaderVersion != base.protocol.MinReaderVersion || p.MinWriterVersion != base.protocol.MinWriterVersion || !slices.Equal(p.names(), base.protocol.names()) {
		out.protocol = &p
	}
	m.SchemaString = schemaString(schema)
	out.metadata = &m
	return nil
}

// nextSchema gives the schema after the commit and whether it differs.
func (c *Commit) nextSchema(base *Snapshot) (*structType, bool, error) {
	schema, changed := base.schema, false
	if c.Schema != nil {
		var err error
		if schema, changed, err = evolve(base.schema, c.Schema, c.ReplaceAll); err != nil {
			return nil, false, err
		}
	}
	commented, more, err := withComments(schema, c.ColumnComments)
	return commented, changed || more, err
}

func (t *Table) planCreate(c *Commit, out *commitActions, now time.Time) error {
	if c.Schema == nil || c.Schema.NumFields() == 0 {
		return fault.New("DELTA_EMPTY_SCHEMA", "a new table needs columns")
	}
	schema, err := fromArrow(c.Schema.Fields(), "")
	if err != nil {
		return err
	}
	if schema, _, err = withComments(schema, c.ColumnComments); err != nil {
		return err
	}
	if err := checkPartitions(schema, c.PartitionBy); err != nil {
		return err
	}
	p, err := Protocol{MinReaderVersion: 1, MinWriterVersion: 2}.forTable(schema, c.Properties, len(c.ClusterBy) > 0)
	if err != nil {
		return err
	}
	created := now.UnixMilli()
	m := &Metadata{
		ID: uuid.NewString(), Name: c.Name, Description: c.Comment, Format: Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: schemaString(schema), PartitionColumns: append([]string{}, c.PartitionBy...),
		Configuration: maps.Clone(c.Properties), CreatedTime: &created,
	}
	if m.Configuration == nil {
		m.Configuration = map[string]string{}
	}
	if len(c.ClusterBy) > 0 {
		d, err := clusteringDomain(schema, c.ClusterBy, c.PartitionBy)
		if err != nil {
			return err
		}
		out.domains = []domain{d}
	}
	out.protocol, out.metadata = &p, m
	return checkWritable(&p, m, schema)
}

// clusteringDomain names the columns by which readers may expect the files to be clustered.
func clusteringDomain(schema *structType, by, partitionBy []string) (domain, error) {
	if len(partitionBy) > 0 {
		return domain{}, fault.New("DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "a table cannot have both")
	}
	columns := make([][]string, len(by))
	for i, name := range by {
		columns[i] = strings.Split(name, ".")
		if schema.leaf(columns[i]) == nil {
			return domain{}, fault.New("DELTA_COLUMN_NOT_FOUND", "clustering column %q is not in the schema", name)
		}
	}
	conf, err := json.Marshal(map[string]any{"clusteringColumns": columns})
	if err != nil {
		return domain{}, fault.Wrap(err, "DELTA_COMMIT_FAILED", "clustering columns")
	}
	return domain{Domain: "delta.clustering", Configuration: string(conf)}, nil
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
func checkAdds(adds []AddFile, m *Metadata) error {
	seen := make(map[string]bool, len(adds))
	for i := range adds {
		f := &adds[i]
		key, err := canonicalPath(f.Path)
		if err != nil {
			return err
		}
		if seen[key] {
			return fault.New("DELTA_COMMIT_FAILED", "file %s is added twice", f.Path)
		}
		seen[key] = true
		if len(f.PartitionValues) != len(m.PartitionColumns) {
			return fault.New("DELTA_COMMIT_FAILED", "file %s was written for other partition columns than %v", f.Path, m.PartitionColumns)
		}
		for _, c := range m.PartitionColumns {
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
			f := *live
			f.DataChange = c.Remove[i].DataChange
			gone = append(gone, f)
		}
	}
	changes := false
	for i := range gone {
		change := c.ReplaceAll || gone[i].DataChange
		changes = changes || change
		out.removes = append(out.removes, gone[i].removal(now.UnixMilli(), change))
	}
	if changes && strings.EqualFold(m.Configuration["delta.appendOnly"], "true") {
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

func (c *commitActions) encode() ([]byte, error) {
	lines := make([]any, 0, 4+len(c.removes)+len(c.adds))
	add := func(key string, v any) { lines = append(lines, map[string]any{key: v}) }
	add("commitInfo", c.info)
	if c.protocol != nil {
		add("protocol", c.protocol)
	}
	if c.metadata != nil {
		add("metaData", c.metadata)
	}
	for i := range c.txns {
		add("txn", &c.txns[i])
	}
	for i := range c.domains {
		add("domainMetadata", &c.domains[i])
	}
	for i := range c.removes {
		add("remove", &c.removes[i])
	}
	for i := range c.adds {
		add("add", &c.adds[i])
	}
	return encodeActions(lines)
}

// put tries to write the version. It is not won when another writer has it.
// Any failure but "taken" leaves the outcome open, and so does "taken" when the
// store repeated a request of ours: what lies there tells who wrote it.
func (t *Table) put(ctx context.Context, a *attempt) (won bool, err error) {
	name := commitName(a.version)
	fpBeforePut.Hit()
	putErr := t.store.PutIfAbsent(ctx, name, a.data)
	fpAfterPut.Hit()
	if putErr == nil {
		return true, nil
	}
	// The answer is worth having even if the caller has given up meanwhile.
	c, _, err := t.readCommit(context.WithoutCancel(ctx), a.version)
	switch {
	case err == nil && c.info != nil && c.info.TxnID == a.txnID:
		return true, nil
	case err == nil && errors.Is(putErr, storage.ErrExist):
		return false, nil
	case errors.Is(putErr, storage.ErrExist):
		return false, err
	case errors.Is(err, storage.ErrNotExist):
		return false, fault.Wrap(putErr, "DELTA_COMMIT_FAILED", "version %d could not be written", a.version).Retryable()
	case err != nil:
		return false, fault.Wrap(errors.Join(putErr, err), "DELTA_COMMIT_OUTCOME_UNKNOWN", "version %d could not be written, and what lies there cannot be read", a.version)
	}
	return false, nil
}

// landed makes the new version known without reading it back, and writes the checkpoint when one is due.
func (t *Table) landed(ctx context.Context, a *attempt) Result {
	res := Result{Version: a.version}
	s, err := t.after(ctx, a)
	if err != nil {
		res.CheckpointError = err
		return res
	}
	t.remember(s)
	if interval := s.checkpointInterval(); a.version > 0 && a.version%interval == 0 {
		res.CheckpointError = t.writeCheckpoint(ctx, s)
	}
	return res
}

// after derives the snapshot of the version just written.
func (t *Table) after(ctx context.Context, a *attempt) (*Snapshot, error) {
	at := time.Time{}
	if ict := a.actions.info.InCommitTimestamp; ict != nil {
		at = time.UnixMilli(*ict).UTC()
	} else {
		info, err := t.store.Stat(ctx, commitName(a.version))
		if err != nil {
			return nil, err
		}
		at = info.ModTime.UTC()
	}
	r := newReplay(t, a.base)
	if err := r.apply(a.actions, a.version, at); err != nil {
		return nil, err
	}
	return r.finish()
}
