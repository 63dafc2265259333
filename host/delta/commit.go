package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

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
	// ClusterBy names the clustering columns; nil keeps, none at all ends the clustering.
	ClusterBy []string
	// Properties are set on top of those there are. Those that ask for a feature,
	// such as delta.enableDeletionVectors or delta.feature.<name> = supported, raise the protocol.
	Properties map[string]string
	// Unset names properties that are taken away.
	Unset []string
	// Name and Comment of the table; empty keeps.
	Name    string
	Comment string
	// NoComment takes the comment away.
	NoComment bool
	// ColumnComments are set on top of those there are, by column.
	ColumnComments map[string]string

	Add    []AddFile
	Remove []AddFile
	// Delete takes single rows out of files by deletion vectors. Rows that a
	// commit which won the race deleted stay deleted, too; a file of which no row
	// is left is removed. A file is in Remove or in Delete, once.
	Delete []FileDelete
	// ReplaceAll removes every live file of the version that the commit lands on.
	ReplaceAll bool
	// Redefines says that, with ReplaceAll, Schema is the whole definition of the
	// columns: comments and generation expressions that it lacks are gone.
	Redefines bool
	// ChangeData are the files of the change data feed. With any of them all
	// changes of the commit must be in them.
	ChangeData []CDCFile
	// Reads says what the outcome depends on beside Remove and Delete.
	Reads Reads
	// Rearranges says that rows only move between files: nothing changes for readers.
	Rearranges bool
	// Domains are set, or taken away, on top of those there are.
	Domains []DomainMetadata
	// Metrics are added to those that are counted, for commitInfo.operationMetrics.
	Metrics map[string]any
	// Change is what happens to the columns that there are.
	Change SchemaChange
	// Txn makes the commit happen once: if the table has this version of the
	// application or a later one, Commit writes nothing and fails with *AlreadyCommitted.
	Txn *Txn
	// Also are versions of other applications that become the table's in the
	// same commit, whatever it has of them. They gate nothing; but a commit that
	// won the race and moved one of them is a conflict, as with Txn: what this one
	// says was made of what that application had before.
	Also []Txn
	// restore is the metadata of an older version, taken whole instead of what the fields above say.
	restore *Metadata
	// exact refuses even blind appends that came before, whatever the table's isolation.
	exact bool
	// Timestamp is when the commit says it was made; zero is now.
	Timestamp time.Time
}

// FileDelete names rows of a file.
type FileDelete struct {
	// File is the file as it was read, its deletion vector included.
	File AddFile
	// Rows are the positions that are newly deleted.
	Rows *RowSet

	// gone are those that were deleted before, when known: a mutation has read
	// the vector already.
	gone  *RowSet
	known bool
}

// Reads is what the outcome of a commit depends on. The zero value is nothing:
// the commit is right whatever others commit before it.
type Reads struct {
	// Table says that any change of rows matters.
	Table bool
	// Where says that rows matter which may meet the condition.
	Where *Predicate
}

// Result tells where a commit landed.
type Result struct {
	Version int64
	// CheckpointError is set when the commit stands but the checkpoint that was
	// due could not be written. The next one that is due makes up for it.
	CheckpointError error
}

// AlreadyCommitted says that the table has the transaction, or a later one of the same application.
type AlreadyCommitted struct { //nolint:errname // it is an outcome more than a failure, and callers ask for it by this name
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
	if err := t.holdNewConstraints(ctx, &c); err != nil {
		return Result{}, err
	}
	x, err := t.begin(&c)
	if err != nil {
		return Result{}, err
	}
	for {
		attempt, err := x.prepare(ctx, base)
		if err != nil {
			x.discardVectors(ctx) // whatever was tried before is known to have lost
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
			x.discardVectors(ctx)
			return Result{}, err
		}
	}
}

// transaction is a commit on its way through its attempts.
type transaction struct {
	table  *Table
	commit *Commit
	// seen is the version up to which the winners have been looked at.
	seen         int64
	serializable bool
	where        *pruner              // of Reads.Where; nil without
	removed      map[string]bool      // keys of the files that are removed as a whole
	deletes      map[string]*deletion // by canonical path
	vectors      *writtenVectors
	counted      map[string]int64 // rows of files as their footers tell, by path
}

func (t *Table) begin(c *Commit) (*transaction, error) {
	if err := c.checkTxns(); err != nil {
		return nil, err
	}
	x := &transaction{
		table: t, commit: c, removed: map[string]bool{}, deletes: map[string]*deletion{}, counted: map[string]int64{},
	}
	if c.Read != nil {
		x.seen, x.serializable = c.Read.version, c.Read.serializable() || c.exact
		if c.Reads.Where != nil {
			var err error
			if x.where, err = c.Read.prune(c.Reads.Where); err != nil {
				return nil, err
			}
		}
	}
	for i := range c.Remove {
		key, err := fileKey(c.Remove[i].Path, c.Remove[i].DeletionVector)
		if err != nil {
			return nil, err
		}
		if x.removed[key] {
			return nil, fault.New("DELTA_COMMIT_FAILED", "file %s is removed twice", c.Remove[i].Path)
		}
		x.removed[key] = true
	}
	return x, x.resolveDeletes()
}

// prepare makes the next attempt, on top of base.
func (x *transaction) prepare(ctx context.Context, base *Snapshot) (*attempt, error) {
	if err := checkTxn(base, x.commit.Txn); err != nil {
		return nil, err
	}
	if base != nil {
		if err := x.follow(ctx, base.version); err != nil {
			return nil, err
		}
	}
	return x.plan(ctx, base)
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

// checkTxns refuses two versions of one application: actions of a version have no order.
func (c *Commit) checkTxns() error {
	for i := range c.Also {
		id := c.Also[i].AppID
		if c.Txn != nil && c.Txn.AppID == id || slices.ContainsFunc(c.Also[:i], func(t Txn) bool { return t.AppID == id }) {
			return fault.New("DELTA_COMMIT_FAILED", "the commit sets application %q twice", id)
		}
	}
	return nil
}

// sets tells whether the commit sets the version of an application.
func (c *Commit) sets(appID string) bool {
	return c.Txn != nil && c.Txn.AppID == appID || slices.ContainsFunc(c.Also, func(t Txn) bool { return t.AppID == appID })
}

// txns are the actions for Txn and Also, with the time of the commit where they have none.
func (c *Commit) txns(now time.Time) []Txn {
	var out []Txn
	if c.Txn != nil {
		out = append(out, *c.Txn)
	}
	out = append(out, c.Also...)
	for i := range out {
		if out[i].LastUpdated == nil {
			ms := now.UnixMilli()
			out[i].LastUpdated = &ms
		}
	}
	return out
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
	c, err := t.readCommit(context.WithoutCancel(ctx), a.version)
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
	info, err := t.store.Stat(ctx, commitName(a.version))
	if err != nil {
		return nil, err
	}
	a.actions.modified = info.ModTime
	r := newReplay(t, a.base)
	if err := r.apply(a.actions, a.version); err != nil {
		return nil, err
	}
	return r.finish()
}
