package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
)

// OptimizeOptions says what Optimize rewrites.
type OptimizeOptions struct {
	// Where narrows it to files that may hold rows for which the condition is
	// true: one on partition columns picks partitions. nil is all.
	Where *Predicate
	// Partitions narrows it to the partitions for which a condition on the
	// partition columns is true, in SQL. Empty is all.
	Partitions string
	// TargetSize is about how large a file becomes; 0 is the table's
	// delta.targetFileSize, or else 128 MiB. Files below three quarters of it are small.
	TargetSize int64
	// PurgeRatio is the share of deleted rows from which on a file is rewritten
	// for that alone; 0 is 0.05, and with a negative one none is.
	PurgeRatio float64
	// Full clusters files anew that are clustered already, by whomever.
	Full bool
	// CommitBytes is about how much one commit rewrites; 0 is 4 GiB.
	CommitBytes int64
	// Retries is how often in a row a commit may lose to others that changed the
	// same files; 0 is 10.
	Retries int
	// Auto does only what is worth doing between two writes; nil is everything.
	Auto *AutoCompact
	// TempDir is where rows wait that do not fit in memory while they are
	// clustered; "" is the system's folder of temporary files.
	TempDir string
	// EngineInfo and UserMetadata are kept in the commits.
	EngineInfo, UserMetadata string
}

// AutoCompact is how little an Optimize does that runs by itself after a write.
// It takes one look at the table; what is left over waits for the next time.
type AutoCompact struct {
	// SmallRatio is the share of the target size below which a file is small.
	SmallRatio float64
	// Least is how many small files of about one size a partition must have for
	// them to be packed, and smaller ones with them. Fewer are left alone, and so
	// are deleted rows in them.
	Least int
	// Bytes is about how much is rewritten at most, but for the first file.
	Bytes int64
}

// OptimizeResult tells what Optimize did. Without Commits there was nothing to do.
type OptimizeResult struct {
	// Version is the version of the last commit, or the one that was looked at.
	Version int64
	Commits int
	// RemovedFiles of RemovedBytes became AddedFiles of AddedBytes, in so many partitions.
	RemovedFiles, RemovedBytes, AddedFiles, AddedBytes, Partitions int64
	// Rows were written; DeletedRows were left out, of PurgedVectors deletion vectors.
	Rows, PurgedVectors, DeletedRows int64
	// Conflicts counts the files whose rewriting was in vain, since others changed them meanwhile.
	Conflicts int64
	// CheckpointError is set when the commits stand but a checkpoint that was due could not be written.
	CheckpointError error
}

const (
	defaultPurgeRatio  = 0.05
	defaultCommitBytes = 4 << 30
	defaultRetries     = 10
	// binTargets is how many files of the target size are made of one bin.
	binTargets = 64
)

// Optimize rewrites small files as few of equal size near the target, files
// with many deleted rows without them, and the files of a clustered table in
// the order of its clustering columns. Rows only move: no version reads other
// rows than before, the change feed tells of nothing, and row ids stay where
// the table tracks them. What is well sized already is left alone, so a second
// run finds nothing to do. Files that others add meanwhile are not its business;
// files that others change meanwhile are tried again.
func (t *Table) Optimize(ctx context.Context, opt OptimizeOptions) (OptimizeResult, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return OptimizeResult{}, err
	}
	o, err := newOptimizer(s, opt)
	if err != nil {
		return OptimizeResult{}, err
	}
	o.res.Version = s.version
	if opt.Auto != nil && o.packing.idle(s) {
		return o.result(), nil
	}
	for {
		bins, err := o.plan(ctx, s)
		if err != nil || len(bins) == 0 {
			return o.result(), err
		}
		for _, batch := range batches(bins, o.commitBytes) {
			if err := o.rewrite(ctx, s, batch); err != nil {
				return o.result(), err
			}
		}
		if opt.Auto != nil {
			return o.result(), nil
		}
		// What is left over of several bins may fill a file together.
		o.packing.all = false
		if s, err = t.Snapshot(ctx); err != nil {
			return o.result(), err
		}
	}
}

// optimizer is one run.
type optimizer struct {
	table       *Table
	opt         OptimizeOptions
	run         string // in the names of its files
	packing     packing
	commitBytes int64
	paths       [][]string // of the clustering columns, by name
	mine        map[string]bool
	made        int // files written so far
	lost        int // commits in a row that lost
	partitions  map[string]bool
	res         OptimizeResult
}

func newOptimizer(s *Snapshot, opt OptimizeOptions) (*optimizer, error) {
	if err := checkWritable(s.protocol, s.metadata, s.schema); err != nil {
		return nil, err
	}
	o := &optimizer{table: s.table, opt: opt, run: "optimize-" + uuid.NewString(), partitions: map[string]bool{}}
	target := opt.TargetSize
	if target <= 0 {
		var err error
		if target, err = targetSize(s.metadata.Configuration); err != nil {
			return nil, err
		}
	}
	purge := opt.PurgeRatio
	switch {
	case purge == 0:
		purge = defaultPurgeRatio
	case purge < 0:
		purge = math.Inf(1)
	}
	if o.commitBytes = opt.CommitBytes; o.commitBytes <= 0 {
		o.commitBytes = defaultCommitBytes
	}
	if o.opt.Retries <= 0 {
		o.opt.Retries = defaultRetries
	}
	o.packing = packing{target: target, purge: purge, most: max(2*target, min(binTargets*target, o.commitBytes)), all: opt.Full}
	if a := opt.Auto; a != nil {
		o.packing.auto = a
		o.packing.most = max(1, min(o.packing.most, a.Bytes))
	}
	return o, o.clusterBy(s)
}

// clusterBy finds the clustering columns.
func (o *optimizer) clusterBy(s *Snapshot) error {
	stored := s.clusterPaths()
	o.paths, o.packing.cluster = nil, ""
	if len(stored) == 0 {
		return nil
	}
	for _, p := range stored {
		path := namedPath(s.schema, p, s.mapping != "none")
		if path == nil {
			return fault.New("DELTA_COLUMN_NOT_FOUND", "clustering column %q is not in the schema", strings.Join(p, "."))
		}
		o.paths = append(o.paths, path)
	}
	mark, err := json.Marshal(stored)
	if err != nil {
		return fault.Wrap(err, "DELTA_INVALID_LOG", "clustering columns")
	}
	o.packing.cluster = string(mark)
	return nil
}

// plan gives the bins of a version: of the files that were there at the start,
// and of those that the run has made since.
func (o *optimizer) plan(ctx context.Context, s *Snapshot) ([]bin, error) {
	files, err := s.FilesWhere(ctx, o.opt.Where)
	if err == nil {
		files, err = s.filesOfPartitions(ctx, files, o.opt.Partitions)
	}
	if err != nil {
		return nil, err
	}
	if o.mine == nil {
		o.mine = make(map[string]bool, len(files))
		for i := range files {
			o.mine[files[i].Path] = true
		}
	}
	files = slices.DeleteFunc(files, func(f AddFile) bool { return !o.mine[f.Path] })
	if err := o.clusterBy(s); err != nil {
		return nil, err
	}
	return o.packing.bins(files), nil
}

// filesOfPartitions gives those of the files that lie in partitions for which a condition holds.
func (s *Snapshot) filesOfPartitions(ctx context.Context, files []AddFile, text string) (_ []AddFile, err error) {
	c, err := s.condition(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if !c.ofPartitions() {
		return nil, fault.New("DELTA_NON_PARTITION_COLUMN_REFERENCE", "the condition %s reads columns that do not partition the table", text).
			WithHint("The table is partitioned by %v", s.metadata.PartitionColumns)
	}
	return c.wholeFiles(ctx, files)
}

func (o *optimizer) result() OptimizeResult {
	o.res.Partitions = int64(len(o.partitions))
	return o.res
}

// parallelBins is how many bins are rewritten at once. Reading and writing one
// takes several processors already, and memory for its row group.
func parallelBins() int { return min(4, max(1, runtime.GOMAXPROCS(0)/2)) }

// keepsRowIDs tells whether rows that move must keep their ids.
func (s *Snapshot) keepsRowIDs() bool {
	return rowTracking(s.protocol, s.metadata) == trackingEnabled
}

// rewritten is a bin and what it became.
type rewritten struct {
	bin
	added []AddFile
	rows  int64
}

// rewrite makes the files of a batch of bins, several bins at a time, and commits them.
func (o *optimizer) rewrite(ctx context.Context, s *Snapshot, bins []bin) error {
	done := make([]rewritten, len(bins))
	first := o.made
	o.made += len(bins)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(parallelBins())
	for i := range bins {
		g.Go(func() (err error) {
			done[i].bin = bins[i]
			w := &binWriter{o: o, s: s, name: fmt.Sprintf("%s-%05d", o.run, first+i), divide: newDivider(&bins[i], o.packing.target)}
			done[i].added, err = w.write(inner, &bins[i])
			done[i].rows = w.rows
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return errors.Join(err, o.discard(ctx, done))
	}
	return o.commit(ctx, s, done)
}

// commit commits what the bins became. When others have changed files of some
// bins, those are dropped and the rest is tried again.
func (o *optimizer) commit(ctx context.Context, s *Snapshot, done []rewritten) error {
	for len(done) > 0 {
		c := o.commitOf(s, done)
		res, err := o.table.Commit(ctx, c)
		if err == nil {
			o.lost = 0
			o.count(done, res)
			return nil
		}
		if !losesRace(err) {
			return err // it may yet be in the log: its files stay, for a vacuum to judge
		}
		if o.lost++; o.lost > o.opt.Retries {
			return errors.Join(err, o.discard(ctx, done))
		}
		now, snapErr := o.table.Snapshot(ctx)
		if snapErr != nil {
			return errors.Join(snapErr, o.discard(ctx, done))
		}
		keep, drop := stillValid(s, now, done)
		for i := range drop {
			o.res.Conflicts += int64(len(drop[i].files))
		}
		if err := o.discard(ctx, drop); err != nil {
			return err
		}
		s, done = now, keep
	}
	return nil
}

// losesRace tells whether the failure says that nothing was committed, and that it can be tried anew.
func losesRace(err error) bool {
	code := fault.CodeOf(err)
	return strings.HasPrefix(code, "DELTA_CONCURRENT_") || code == "DELTA_METADATA_CHANGED" || code == "DELTA_PROTOCOL_CHANGED"
}

// stillValid parts the bins whose files are all as they were read from the others.
// With another schema or other properties what was written may be wrong.
func stillValid(was, now *Snapshot, done []rewritten) (keep, drop []rewritten) {
	same := reflect.DeepEqual(was.metadata, now.metadata) && reflect.DeepEqual(was.protocol, now.protocol)
	for _, r := range done {
		valid := same
		for i := range r.files {
			key, err := fileKey(r.files[i].Path, r.files[i].DeletionVector)
			if err != nil {
				valid = false
			} else if _, live := now.files.get(key); !live {
				valid = false
			}
		}
		if valid {
			keep = append(keep, r)
		} else {
			drop = append(drop, r)
		}
	}
	return keep, drop
}

// discard deletes files that were written in vain.
func (o *optimizer) discard(ctx context.Context, done []rewritten) error {
	var errs []error
	for _, r := range done {
		for i := range r.added {
			name, err := canonicalPath(r.added[i].Path)
			if err == nil {
				err = o.table.store.Delete(context.WithoutCancel(ctx), name)
			}
			errs = appendError(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o *optimizer) commitOf(s *Snapshot, done []rewritten) Commit {
	c := Commit{Read: s, Operation: "OPTIMIZE", Rearranges: true, EngineInfo: o.opt.EngineInfo, UserMetadata: o.opt.UserMetadata}
	predicate, clusterBy := []string{}, []string{}
	if o.opt.Where != nil {
		predicate = append(predicate, o.opt.Where.String())
	}
	if o.opt.Partitions != "" {
		predicate = append(predicate, o.opt.Partitions)
	}
	for _, p := range o.paths {
		clusterBy = append(clusterBy, strings.Join(p, "."))
	}
	c.Parameters = map[string]any{"predicate": predicate, "zOrderBy": []string{}, "clusterBy": clusterBy, "isFull": o.opt.Full, "auto": o.opt.Auto != nil}
	var removed, added, vectors, deleted int64
	var sizes []int64
	for _, r := range done {
		for _, f := range r.files {
			c.Remove = append(c.Remove, f)
			removed += f.Size
			if f.DeletionVector != nil {
				vectors++
				deleted += f.DeletionVector.Cardinality
			}
		}
		for _, f := range r.added {
			c.Add = append(c.Add, f)
			added += f.Size
			sizes = append(sizes, f.Size)
		}
	}
	c.Metrics = map[string]any{
		"numAddedFiles": itoa(int64(len(c.Add))), "numAddedBytes": itoa(added),
		"numRemovedFiles": itoa(int64(len(c.Remove))), "numRemovedBytes": itoa(removed),
		"numDeletionVectorsRemoved": itoa(vectors), "numDeletionVectorRowsRemoved": itoa(deleted),
	}
	slices.Sort(sizes)
	for name, share := range map[string]float64{"minFileSize": 0, "p25FileSize": 0.25, "p50FileSize": 0.5, "p75FileSize": 0.75, "maxFileSize": 1} {
		if n := len(sizes); n > 0 {
			c.Metrics[name] = itoa(sizes[min(n-1, int(share*float64(n)))])
		}
	}
	return c
}

// count adds a commit to the result.
func (o *optimizer) count(done []rewritten, res Result) {
	o.res.Version = res.Version
	o.res.Commits++
	o.res.CheckpointError = errors.Join(o.res.CheckpointError, res.CheckpointError)
	for _, r := range done {
		for i := range r.files {
			f := &r.files[i]
			o.res.RemovedFiles++
			o.res.RemovedBytes += f.Size
			if f.DeletionVector != nil {
				o.res.PurgedVectors++
				o.res.DeletedRows += f.DeletionVector.Cardinality
			}
			o.partitions[partitionKey(f.PartitionValues)] = true
		}
		o.res.Rows += r.rows
		for i := range r.added {
			o.mine[r.added[i].Path] = true
			o.res.AddedFiles++
			o.res.AddedBytes += r.added[i].Size
		}
	}
}

// binWriter writes the rows of a bin to files of equal size.
type binWriter struct {
	o      *optimizer
	s      *Snapshot
	name   string
	divide *divider

	writer *FileWriter
	files  int
	rows   int64 // written
	inFile int64 // of them in the file in the making
	added  []AddFile
}

// write gives the files that hold the bin's live rows. After an error there are none.
func (w *binWriter) write(ctx context.Context, b *bin) ([]AddFile, error) {
	var err error
	if len(w.o.paths) > 0 {
		err = w.clustered(ctx, b)
	} else {
		err = w.scan(ctx, ScanOptions{Files: b.files, RowTracking: w.s.keepsRowIDs()}, w.take)
	}
	if err == nil {
		err = w.endFile(ctx)
	}
	if err != nil {
		if w.writer != nil {
			err = errors.Join(err, w.writer.Abort(ctx))
		}
		return nil, errors.Join(err, w.o.discard(ctx, []rewritten{{added: w.added}}))
	}
	for i := range w.added {
		f := &w.added[i]
		f.DataChange = false
		if len(w.o.paths) > 0 {
			f.ClusteringProvider = clusteringProvider
			f.Tags = map[string]string{clusterTag: w.o.packing.cluster}
		}
	}
	return w.added, nil
}

// scan gives the live rows of files, with their identity where the table tracks it.
func (w *binWriter) scan(ctx context.Context, opt ScanOptions, use func(context.Context, arrow.RecordBatch) error) (err error) {
	r, err := w.s.Scan(ctx, opt)
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		if err := use(ctx, r.RecordBatch()); err != nil {
			return err
		}
	}
	return r.Err()
}

// take writes rows, and begins another file where the divider says so.
func (w *binWriter) take(ctx context.Context, rec arrow.RecordBatch) error {
	for from := int64(0); from < rec.NumRows(); {
		if w.writer == nil {
			if err := w.beginFile(ctx); err != nil {
				return err
			}
		}
		n := min(rec.NumRows()-from, max(1, w.divide.quota()-w.inFile))
		part := rec.NewSlice(from, from+n)
		err := w.writer.take(ctx, part, nil)
		part.Release()
		if err != nil {
			return err
		}
		from, w.inFile, w.rows = from+n, w.inFile+n, w.rows+n
		if w.inFile < w.divide.quota() {
			continue
		}
		size, err := w.writer.sized(ctx)
		if err != nil {
			return err
		}
		if w.divide.ends(w.inFile, size) {
			if err := w.endFile(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *binWriter) beginFile(ctx context.Context) (err error) {
	w.writer, err = w.o.table.Write(ctx, WriteOptions{
		Snapshot: w.s, Name: fmt.Sprintf("%s-%04d", w.name, w.files), RowTracking: w.s.keepsRowIDs(),
		// Only what the estimate did not see coming ends a file of its own accord.
		TargetSize: 2 * w.o.packing.target,
	})
	w.files++
	w.inFile = 0
	return err
}

func (w *binWriter) endFile(ctx context.Context) error {
	if w.writer == nil {
		return nil
	}
	files, err := w.writer.Close(ctx)
	w.writer = nil
	w.added = append(w.added, files...)
	return err
}

// clustered writes the rows in the order of the clustering columns.
func (w *binWriter) clustered(ctx context.Context, b *bin) (err error) {
	order, err := w.learn(ctx, b)
	if err != nil {
		return err
	}
	var sorter *curveSort
	err = w.scan(ctx, ScanOptions{Files: b.files, RowTracking: w.s.keepsRowIDs()}, func(_ context.Context, rec arrow.RecordBatch) error {
		if sorter == nil {
			dir := w.o.opt.TempDir
			if dir == "" {
				dir = os.TempDir()
			}
			sorter = newCurveSort(w.o.table.mem, order, rec.Schema(), dir, int64(sortBytes/parallelBins()))
		}
		return sorter.add(rec)
	})
	if sorter == nil {
		return err
	}
	if err == nil {
		err = sorter.each(ctx, func(rec arrow.RecordBatch) error { return w.take(ctx, rec) })
	}
	return errors.Join(err, sorter.close())
}

// learn reads the clustering columns of the bin and makes the order of a sample of them.
func (w *binWriter) learn(ctx context.Context, b *bin) (*curveOrder, error) {
	order, err := newCurveOrder(w.s.schema, w.o.paths)
	if err != nil {
		return nil, err
	}
	rows := b.rows
	if rows < 0 {
		rows = b.bytes / 8
	}
	step := max(1, rows/sampleRows)
	var sample []arrow.RecordBatch
	defer func() { releaseBatches(sample) }()
	next := int64(0)
	err = w.scan(ctx, ScanOptions{Files: b.files, Columns: order.tops()}, func(_ context.Context, rec arrow.RecordBatch) error {
		var runs [][2]int64
		for ; next < rec.NumRows(); next += step {
			runs = append(runs, [2]int64{next, next + 1})
		}
		next -= rec.NumRows()
		if len(runs) == 0 {
			return nil
		}
		part, err := copyRows(w.o.table.mem, rec, runs)
		if err == nil {
			sample = append(sample, part)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return order, order.learn(sample, int(b.bytes*expansion/partBytes)+1)
}
