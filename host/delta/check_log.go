package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// log replays the commits that the log still has and holds against them what
// is only derived from them: checkpoints, compacted files, version checksums.
func (c *checker) log(ctx context.Context) error {
	seg, err := c.table.list(ctx, 0)
	if err != nil {
		return err
	}
	r, from, err := c.base(ctx, seg)
	if err != nil || r == nil {
		return err
	}
	if from < 0 {
		from = -1
	} else if err := c.derived(ctx, seg, r.s, from); err != nil {
		return err
	}
	err = c.table.eachCommit(ctx, from+1, c.snapshot.version, func(a *commitActions, version int64) error {
		c.report.Commits++
		if err := r.apply(a, version); err != nil {
			return err
		}
		if err := c.changeFiles(ctx, a, version); err != nil {
			return err
		}
		return c.derived(ctx, seg, r.s, version)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case fault.CodeOf(err) == "":
		return err
	default:
		c.found("", nil, err)
		return nil
	}
	if diff := differs(r.s, c.snapshot); diff != "" {
		v := c.snapshot.version
		c.found("", &v, fault.New("DELTA_CHECKPOINT_MISMATCH", "the table as it is opened is not what its commits come to: %s", diff))
	}
	return nil
}

// base gives the oldest state from which on all commits are there: nothing, or
// that of a checkpoint. There is none when the log does not reach that far.
func (c *checker) base(ctx context.Context, seg *segment) (*replay, int64, error) {
	if seg.after(-1, c.snapshot.version) == nil {
		return newReplay(c.table, nil), -1, nil
	}
	for _, cp := range slices.Backward(seg.checkpoints) {
		if cp.version > c.snapshot.version || seg.after(cp.version, c.snapshot.version) != nil {
			continue
		}
		r := newReplay(c.table, nil)
		err := c.table.readCheckpoint(ctx, r, cp)
		if err == nil {
			return r, cp.version, c.table.checkpointTime(ctx, r, cp)
		}
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		v := cp.version
		c.found(cp.names[0], &v, err)
	}
	return nil, 0, nil
}

// derived checks what the log has for one version beside its commit.
func (c *checker) derived(ctx context.Context, seg *segment, s *Snapshot, version int64) error {
	for _, cp := range seg.checkpoints {
		if cp.version == version {
			c.report.Checkpoints++
			if err := c.problem(ctx, cp.names[0], version, c.checkpoint(ctx, s, cp)); err != nil {
				return err
			}
		}
	}
	for _, f := range seg.compacted {
		if f.to == version && seg.after(f.from-1, f.to) == nil {
			if err := c.problem(ctx, f.name, version, c.compacted(ctx, f)); err != nil {
				return err
			}
		}
	}
	name := fmt.Sprintf("%s/%020d.crc", logFolder, version)
	data, err := c.table.store.Get(ctx, name)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err == nil {
		c.report.Checksums++
		err = compareChecksum(s, data)
	}
	return c.problem(ctx, name, version, err)
}

// problem takes an error into the report; only the end of the check is handed on.
func (c *checker) problem(ctx context.Context, file string, version int64, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.found(file, &version, err)
	}
	return nil
}

func (c *checker) checkpoint(ctx context.Context, want *Snapshot, cp checkpointFiles) error {
	r := newReplay(c.table, nil)
	if err := c.table.readCheckpoint(ctx, r, cp); err != nil {
		return err
	}
	if diff := differs(want, r.s); diff != "" {
		return fault.New("DELTA_CHECKPOINT_MISMATCH", "the checkpoint is not what the commits come to: %s", diff)
	}
	return nil
}

// compacted holds a compacted file against its commits. One that readers pass over is none of their business.
func (c *checker) compacted(ctx context.Context, f compactedFile) error {
	part, err := c.table.readPart(ctx, logPart(f))
	if err != nil || part == nil {
		return err
	}
	got, want := newReplay(c.table, nil), newReplay(c.table, nil)
	if err := got.apply(part, f.to); err != nil {
		return err
	}
	if err := c.table.eachCommit(ctx, f.from, f.to, want.apply); err != nil {
		return err
	}
	diff := differs(want.s, got.s)
	if diff == "" {
		diff = differingKeys("tombstone", want.s.tombs, got.s.tombs)
	}
	if diff != "" {
		return fault.New("DELTA_COMPACTED_LOG_MISMATCH", "the file is not what its commits come to: %s", diff)
	}
	return nil
}

// differs tells the first thing in which a state is not the wanted one, "" when
// there is none. Transactions may be missing: they expire.
func differs(want, got *Snapshot) string {
	switch {
	case !want.protocol.equal(got.protocol):
		return "the protocol"
	case !sameMetadata(want.metadata, got.metadata):
		return "the metadata"
	}
	for app, txn := range got.txns {
		if have, ok := want.txns[app]; !ok || have.Version != txn.Version {
			return fmt.Sprintf("transaction %d of application %q", txn.Version, app)
		}
	}
	if !maps.Equal(want.domains, got.domains) {
		return "the domain metadata"
	}
	if diff := differingKeys("file", want.files, got.files); diff != "" {
		return diff
	}
	diff := ""
	want.files.eachWhile(func(key string, f *AddFile) bool {
		other, _ := got.files.get(key)
		if f.Size != other.Size || f.ModificationTime != other.ModificationTime || !reflect.DeepEqual(f.DeletionVector, other.DeletionVector) ||
			!samePartition(f.PartitionValues, other.PartitionValues) || !sameLong(f.BaseRowID, other.BaseRowID) || !sameLong(f.DefaultRowCommitVersion, other.DefaultRowCommitVersion) {
			diff = fmt.Sprintf("what is said of file %s", f.Path)
		}
		return diff == ""
	})
	return diff
}

// differingKeys names a file that one set has and the other has not.
func differingKeys[T any](what string, want, got *fileSet[T]) string {
	diff := ""
	want.eachWhile(func(key string, _ *T) bool {
		if _, ok := got.get(key); !ok {
			diff = fmt.Sprintf("%s %q is missing", what, key)
		}
		return diff == ""
	})
	if diff == "" {
		got.eachWhile(func(key string, _ *T) bool {
			if _, ok := want.get(key); !ok {
				diff = fmt.Sprintf("%s %q is too much", what, key)
			}
			return diff == ""
		})
	}
	return diff
}

func sameMetadata(a, b *Metadata) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Name == b.Name && a.Description == b.Description && a.SchemaString == b.SchemaString &&
		slices.Equal(a.PartitionColumns, b.PartitionColumns) && maps.Equal(a.Configuration, b.Configuration)
}

// samePartition compares partition values; null and the empty string are the same.
func samePartition(a, b map[string]*string) bool {
	return maps.EqualFunc(a, b, func(x, y *string) bool {
		text := func(p *string) string {
			if p == nil {
				return ""
			}
			return *p
		}
		return text(x) == text(y)
	})
}

func sameLong(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// versionChecksum is the content of a .crc file: what another writer counted.
type versionChecksum struct {
	TableSizeBytes     *int64           `json:"tableSizeBytes"`
	NumFiles           *int64           `json:"numFiles"`
	NumMetadata        *int64           `json:"numMetadata"`
	NumProtocol        *int64           `json:"numProtocol"`
	InCommitTimestamp  *int64           `json:"inCommitTimestampOpt"`
	SetTransactions    []Txn            `json:"setTransactions"`
	DomainMetadata     []DomainMetadata `json:"domainMetadata"`
	Metadata           *Metadata        `json:"metadata"`
	Protocol           *Protocol        `json:"protocol"`
	NumDeletedRecords  *int64           `json:"numDeletedRecordsOpt"`
	NumDeletionVectors *int64           `json:"numDeletionVectorsOpt"`
}

// compareChecksum holds a .crc file against the state of its version.
func compareChecksum(s *Snapshot, data []byte) error {
	var crc versionChecksum
	if err := json.Unmarshal(data, &crc); err != nil {
		return fault.Wrap(err, "DELTA_INVALID_CHECKSUM", "the version checksum cannot be read")
	}
	var size, vectors, deleted int64
	s.files.each(func(_ string, f *AddFile) {
		size += f.Size
		if f.DeletionVector != nil {
			vectors++
			deleted += f.DeletionVector.Cardinality
		}
	})
	one := int64(1)
	var ict *int64
	if crc.InCommitTimestamp != nil && s.inCommitTimestamps() {
		ms := s.time.UnixMilli()
		ict = &ms
	}
	for _, n := range []struct {
		name string
		said *int64
		is   *int64
	}{
		{"tableSizeBytes", crc.TableSizeBytes, &size}, {"numFiles", crc.NumFiles, new(int64(s.files.n))}, {"numMetadata", crc.NumMetadata, &one}, {"numProtocol", crc.NumProtocol, &one},
		{"numDeletedRecordsOpt", crc.NumDeletedRecords, &deleted}, {"numDeletionVectorsOpt", crc.NumDeletionVectors, &vectors}, {"inCommitTimestampOpt", crc.InCommitTimestamp, ict},
	} {
		if n.said != nil && n.is != nil && *n.said != *n.is {
			return mismatch("%s is %d, the checksum says %d", n.name, *n.is, *n.said)
		}
	}
	if crc.Protocol != nil && !slices.Equal(crc.Protocol.names(), s.protocol.names()) {
		return mismatch("the protocol is another one")
	}
	if crc.Metadata != nil && !sameMetadata(crc.Metadata, s.metadata) {
		return mismatch("the metadata is another one")
	}
	for _, txn := range crc.SetTransactions {
		if have, ok := s.txns[txn.AppID]; !ok || have.Version != txn.Version {
			return mismatch("application %q is at another transaction than %d", txn.AppID, txn.Version)
		}
	}
	for _, d := range crc.DomainMetadata {
		if have, ok := s.domains[d.Domain]; !ok || have.Configuration != d.Configuration {
			return mismatch("domain %q is another one", d.Domain)
		}
	}
	return nil
}

func mismatch(format string, args ...any) error {
	return fault.New("DELTA_CHECKSUM_MISMATCH", "the version checksum does not fit: "+format, args...)
}

// changeFiles checks the files of the change data feed that a version names.
// VACUUM removes them after the retention; before that they must be there.
func (c *checker) changeFiles(ctx context.Context, a *commitActions, version int64) error {
	if c.table.now().Sub(a.time()) >= c.snapshot.tombstoneRetention() {
		return nil
	}
	for i := range a.cdc {
		c.report.ChangeFiles++
		if err := c.problem(ctx, a.cdc[i].Path, version, c.changeFile(ctx, &a.cdc[i])); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) changeFile(ctx context.Context, f *CDCFile) error {
	o, err := c.table.openFile(ctx, f.Path)
	if err != nil {
		return err
	}
	if size := o.Size(); size != f.Size {
		err = fault.New("DELTA_FILE_SIZE_MISMATCH", "the file has %d bytes, the log says %d", size, f.Size)
	} else if !c.opt.NamesOnly {
		if _, err = c.table.newParquetReader(o); err != nil {
			err = fault.Wrap(err, "DELTA_INVALID_DATA_FILE", "the file is no readable Parquet file")
		}
	}
	return errors.Join(err, o.Close())
}
