package delta

import (
	"context"
	"iter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var errWIP = fault.New("NOT_SUPPORTED", "host/delta is being written")

type Table struct{ store storage.Store }
type Option func(*Table)

func WithAllocator(mem memory.Allocator) Option       { return func(*Table) {} }
func WithClock(now func() time.Time) Option           { return func(*Table) {} }
func Open(store storage.Store, opts ...Option) *Table { return &Table{store} }

func (t *Table) Snapshot(ctx context.Context) (*Snapshot, error)                  { return nil, errWIP }
func (t *Table) SnapshotAt(ctx context.Context, version int64) (*Snapshot, error) { return nil, errWIP }
func (t *Table) Log(ctx context.Context, from, to int64) iter.Seq2[*Entry, error] { return nil }
func (t *Table) Write(ctx context.Context, opt WriteOptions) (*FileWriter, error) { return nil, errWIP }
func (t *Table) Commit(ctx context.Context, c Commit) (Result, error)             { return Result{}, errWIP }
func (t *Table) History(ctx context.Context, limit int) ([]HistoryEntry, error)   { return nil, errWIP }
func (t *Table) Describe(ctx context.Context) (*Description, error)               { return nil, errWIP }

type Entry struct {
	Version    int64
	Timestamp  time.Time
	Adds       []AddFile
	Removes    []RemoveFile
	Metadata   *Metadata
	Protocol   *Protocol
	Txns       []Txn
	CommitInfo *CommitInfo
}

type Snapshot struct{}

func (s *Snapshot) Version() int64                               { return 0 }
func (s *Snapshot) Timestamp() time.Time                         { return time.Time{} }
func (s *Snapshot) Schema() *arrow.Schema                        { return nil }
func (s *Snapshot) Protocol() Protocol                           { return Protocol{} }
func (s *Snapshot) Metadata() Metadata                           { return Metadata{} }
func (s *Snapshot) Properties() map[string]string                { return nil }
func (s *Snapshot) PartitionColumns() []string                   { return nil }
func (s *Snapshot) Features() []string                           { return nil }
func (s *Snapshot) Files(ctx context.Context) ([]AddFile, error) { return nil, errWIP }
func (s *Snapshot) NumFiles() int                                { return 0 }
func (s *Snapshot) LiveRows() (int64, error)                     { return 0, errWIP }
func (s *Snapshot) Txn(appID string) (int64, bool)               { return 0, false }
func (s *Snapshot) Scan(ctx context.Context, opt ScanOptions) (array.RecordReader, error) {
	return nil, errWIP
}

type ScanOptions struct {
	Columns   []string  // nil: all
	Files     []AddFile // nil: all live files
	BatchRows int       // 0: a default
}

type WriteOptions struct {
	Schema      *arrow.Schema
	Snapshot    *Snapshot // nil for a new table
	PartitionBy []string
	Name        string
	TargetSize  int64
	Properties  map[string]string
}

type FileWriter struct{}

func (w *FileWriter) Write(ctx context.Context, rec arrow.RecordBatch) error { return errWIP }
func (w *FileWriter) Close(ctx context.Context) ([]AddFile, error)           { return nil, errWIP }
func (w *FileWriter) Abort(ctx context.Context) error                        { return nil }

type Commit struct {
	Read           *Snapshot
	Operation      string
	Parameters     map[string]any
	EngineInfo     string
	UserMetadata   string
	Schema         *arrow.Schema
	PartitionBy    []string
	ClusterBy      []string
	Properties     map[string]string
	Name           string
	Comment        string
	ColumnComments map[string]string
	Add            []AddFile
	Remove         []AddFile
	ReplaceAll     bool
	Txn            *Txn
	Timestamp      time.Time
}

type Result struct {
	Version int64
	// CheckpointError is set when the commit stands but its checkpoint could not be written.
	CheckpointError error
}

// AlreadyCommitted: the table already has this transaction or a later one of the same application.
type AlreadyCommitted struct {
	AppID   string
	Version int64 // the transaction version the table has
	Table   int64 // the table version it was seen in
}

func (e *AlreadyCommitted) Error() string { return "" }

type Txn struct {
	AppID       string `json:"appId"`
	Version     int64  `json:"version"`
	LastUpdated *int64 `json:"lastUpdated,omitempty"`
}

type Protocol struct {
	MinReaderVersion int      `json:"minReaderVersion"`
	MinWriterVersion int      `json:"minWriterVersion"`
	ReaderFeatures   []string `json:"readerFeatures,omitempty"`
	WriterFeatures   []string `json:"writerFeatures,omitempty"`
}

type Format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

type Metadata struct {
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	Format           Format            `json:"format"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	Configuration    map[string]string `json:"configuration"`
	CreatedTime      *int64            `json:"createdTime,omitempty"`
}

type DeletionVector struct {
	StorageType    string `json:"storageType"`
	PathOrInlineDv string `json:"pathOrInlineDv"`
	Offset         *int32 `json:"offset,omitempty"`
	SizeInBytes    int32  `json:"sizeInBytes"`
	Cardinality    int64  `json:"cardinality"`
}

type AddFile struct {
	Path                    string             `json:"path"`
	PartitionValues         map[string]*string `json:"partitionValues"`
	Size                    int64              `json:"size"`
	ModificationTime        int64              `json:"modificationTime"`
	DataChange              bool               `json:"dataChange"`
	Stats                   string             `json:"stats,omitempty"`
	Tags                    map[string]string  `json:"tags,omitempty"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitempty"`
	BaseRowID               *int64             `json:"baseRowId,omitempty"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitempty"`
	ClusteringProvider      string             `json:"clusteringProvider,omitempty"`
}

type RemoveFile struct {
	Path                    string             `json:"path"`
	DeletionTimestamp       *int64             `json:"deletionTimestamp,omitempty"`
	DataChange              bool               `json:"dataChange"`
	ExtendedFileMetadata    bool               `json:"extendedFileMetadata,omitempty"`
	PartitionValues         map[string]*string `json:"partitionValues,omitempty"`
	Size                    *int64             `json:"size,omitempty"`
	Stats                   string             `json:"stats,omitempty"`
	Tags                    map[string]string  `json:"tags,omitempty"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitempty"`
	BaseRowID               *int64             `json:"baseRowId,omitempty"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitempty"`
}

type CommitInfo struct {
	Timestamp           int64             `json:"timestamp"`
	InCommitTimestamp   *int64            `json:"inCommitTimestamp,omitempty"`
	Operation           string            `json:"operation"`
	OperationParameters map[string]any    `json:"operationParameters,omitempty"`
	OperationMetrics    map[string]any    `json:"operationMetrics,omitempty"`
	ReadVersion         *int64            `json:"readVersion,omitempty"`
	IsBlindAppend       *bool             `json:"isBlindAppend,omitempty"`
	EngineInfo          string            `json:"engineInfo,omitempty"`
	UserMetadata        string            `json:"userMetadata,omitempty"`
	TxnID               string            `json:"txnId,omitempty"`
	Tags                map[string]string `json:"tags,omitempty"`
}

// MergeSchema adds the columns of batch that table lacks.
func MergeSchema(table, batch *arrow.Schema) (merged *arrow.Schema, added []string, err error) {
	return nil, nil, errWIP
}

// HistoryEntry is one version as `weir delta history` prints it.
type HistoryEntry struct {
	Version             int64          `json:"version"`
	Timestamp           time.Time      `json:"timestamp"`
	Operation           string         `json:"operation"`
	OperationParameters map[string]any `json:"operation_parameters,omitempty"`
	OperationMetrics    map[string]any `json:"operation_metrics,omitempty"`
	ReadVersion         *int64         `json:"read_version,omitempty"`
	IsBlindAppend       *bool          `json:"is_blind_append,omitempty"`
	EngineInfo          string         `json:"engine_info,omitempty"`
	UserMetadata        string         `json:"user_metadata,omitempty"`
	Txns                []Txn          `json:"txns,omitempty"`
	AddedFiles          int            `json:"added_files"`
	RemovedFiles        int            `json:"removed_files"`
}

// Description is what `weir delta describe` prints.
type Description struct {
	Version          int64             `json:"version"`
	Timestamp        time.Time         `json:"timestamp"`
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	MinReader        int               `json:"min_reader"`
	MinWriter        int               `json:"min_writer"`
	Features         []string          `json:"features"`
	Files            int               `json:"files"`
	SizeBytes        int64             `json:"size_bytes"`
	LiveRows         int64             `json:"live_rows"`
	Schema           []Column          `json:"schema"`
	PartitionColumns []string          `json:"partition_columns"`
	Properties       map[string]string `json:"properties"`
	Txns             map[string]int64  `json:"txns"`
}

// Column is one column of a Description.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Comment  string `json:"comment,omitempty"`
}
