package delta

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// Protocol says which readers and writers may touch the table.
type Protocol struct {
	MinReaderVersion int      `json:"minReaderVersion"`
	MinWriterVersion int      `json:"minWriterVersion"`
	ReaderFeatures   []string `json:"readerFeatures,omitzero"`
	WriterFeatures   []string `json:"writerFeatures,omitzero"`
}

// Format names the encoding of the data files; it is always parquet.
type Format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

// Metadata is the table's identity, schema and properties.
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

// Txn is the last transaction of an application that the table holds.
type Txn struct {
	AppID       string `json:"appId"`
	Version     int64  `json:"version"`
	LastUpdated *int64 `json:"lastUpdated,omitempty"`
}

// DeletionVector points at the rows of a file that are deleted.
type DeletionVector struct {
	StorageType    string `json:"storageType"`
	PathOrInlineDv string `json:"pathOrInlineDv"`
	Offset         *int32 `json:"offset,omitempty"`
	SizeInBytes    int32  `json:"sizeInBytes"`
	Cardinality    int64  `json:"cardinality"`
}

// AddFile is a data file of the table. Path is as the log has it: a URI,
// relative to the table's root or absolute.
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

// RemoveFile takes a data file out of the table.
type RemoveFile struct {
	Path                    string             `json:"path"`
	DeletionTimestamp       *int64             `json:"deletionTimestamp,omitempty"`
	DataChange              bool               `json:"dataChange"`
	ExtendedFileMetadata    bool               `json:"extendedFileMetadata,omitempty"`
	PartitionValues         map[string]*string `json:"partitionValues,omitzero"`
	Size                    *int64             `json:"size,omitempty"`
	Stats                   string             `json:"stats,omitempty"`
	Tags                    map[string]string  `json:"tags,omitempty"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitempty"`
	BaseRowID               *int64             `json:"baseRowId,omitempty"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitempty"`
}

// CommitInfo is what a writer says about its commit. All of it is free text
// but InCommitTimestamp.
type CommitInfo struct {
	Timestamp           int64          `json:"timestamp"`
	InCommitTimestamp   *int64         `json:"inCommitTimestamp,omitempty"`
	Operation           string         `json:"operation"`
	OperationParameters map[string]any `json:"operationParameters,omitempty"`
	ReadVersion         *int64         `json:"readVersion,omitempty"`
	IsolationLevel      string         `json:"isolationLevel,omitempty"`
	IsBlindAppend       *bool          `json:"isBlindAppend,omitempty"`
	OperationMetrics    map[string]any `json:"operationMetrics,omitempty"`
	UserMetadata        string         `json:"userMetadata,omitempty"`
	EngineInfo          string         `json:"engineInfo,omitempty"`
	TxnID               string         `json:"txnId,omitempty"`
	// Tags are marks that features leave, such as delta.rowTracking.preserved.
	Tags map[string]string `json:"tags,omitempty"`
}

// DomainMetadata is a named configuration that the table keeps for a feature or
// an application, whether we know it or not. Removed takes the domain away.
type DomainMetadata struct {
	Domain        string `json:"domain"`
	Configuration string `json:"configuration"`
	Removed       bool   `json:"removed"`
}

// CDCFile is a file of the change data feed: rows with their _change_type. If a
// version has any, its changes are in these files and nowhere else.
type CDCFile struct {
	Path            string             `json:"path"`
	PartitionValues map[string]*string `json:"partitionValues"`
	Size            int64              `json:"size"`
	DataChange      bool               `json:"dataChange"` // always false: the rows of the table are in other files
	Tags            map[string]string  `json:"tags,omitempty"`
}

// sidecar names a file that holds a part of the files of a V2 checkpoint.
type sidecar struct {
	Path             string `json:"path"`
	SizeInBytes      int64  `json:"sizeInBytes"`
	ModificationTime int64  `json:"modificationTime"`
}

// action is one line of the log; exactly one field is set. What we do not know is ignored.
type action struct {
	CommitInfo         json.RawMessage `json:"commitInfo,omitempty"`
	Protocol           *Protocol       `json:"protocol,omitempty"`
	Metadata           *Metadata       `json:"metaData,omitempty"`
	Txn                *Txn            `json:"txn,omitempty"`
	Domain             *DomainMetadata `json:"domainMetadata,omitempty"`
	Remove             *RemoveFile     `json:"remove,omitempty"`
	Add                *AddFile        `json:"add,omitempty"`
	Cdc                *CDCFile        `json:"cdc,omitempty"`
	CheckpointMetadata *struct {
		Version int64 `json:"version"`
	} `json:"checkpointMetadata,omitempty"`
	Sidecar *sidecar `json:"sidecar,omitempty"`
}

// commitActions is one version of the log, decoded.
type commitActions struct {
	modified time.Time // of the file

	info     *CommitInfo
	protocol *Protocol
	metadata *Metadata
	txns     []Txn
	domains  []DomainMetadata
	removes  []RemoveFile
	adds     []AddFile
	cdc      []CDCFile

	// Of V2 checkpoints only.
	checkpoint bool
	sidecars   []sidecar
}

// time is the in-commit timestamp, or else the time of the file.
func (c *commitActions) time() time.Time {
	if c.info != nil && c.info.InCommitTimestamp != nil {
		return time.UnixMilli(*c.info.InCommitTimestamp).UTC()
	}
	return c.modified.UTC()
}

// decodeActions reads a stream of JSON values, one action each; the protocol
// promises one a line, real tables hold pretty-printed ones too.
func decodeActions(data []byte) (*commitActions, error) {
	out := &commitActions{}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var a action
		if err := dec.Decode(&a); err != nil {
			if errors.Is(err, io.EOF) {
				return out, nil
			}
			return nil, fault.Wrap(err, "DELTA_INVALID_LOG", "action at byte %d is not readable", dec.InputOffset())
		}
		if err := out.take(&a); err != nil {
			return nil, err
		}
	}
}

func (c *commitActions) take(a *action) error {
	switch {
	case a.Add != nil:
		if a.Add.Path == "" {
			return fault.New("DELTA_INVALID_LOG", "an add action has no path")
		}
		c.adds = append(c.adds, *a.Add)
	case a.Remove != nil:
		if a.Remove.Path == "" {
			return fault.New("DELTA_INVALID_LOG", "a remove action has no path")
		}
		c.removes = append(c.removes, *a.Remove)
	case a.Txn != nil:
		c.txns = append(c.txns, *a.Txn)
	case a.Metadata != nil:
		if c.metadata != nil {
			return fault.New("DELTA_INVALID_LOG", "two metaData actions in one version")
		}
		c.metadata = a.Metadata
	case a.Protocol != nil:
		if c.protocol != nil {
			return fault.New("DELTA_INVALID_LOG", "two protocol actions in one version")
		}
		c.protocol = a.Protocol
	case a.Domain != nil:
		c.domains = append(c.domains, *a.Domain)
	case a.Cdc != nil:
		if a.Cdc.Path == "" {
			return fault.New("DELTA_INVALID_LOG", "a cdc action has no path")
		}
		c.cdc = append(c.cdc, *a.Cdc)
	case a.CheckpointMetadata != nil:
		c.checkpoint = true
	case a.Sidecar != nil:
		c.sidecars = append(c.sidecars, *a.Sidecar)
	case a.CommitInfo != nil:
		c.info = decodeCommitInfo(a.CommitInfo)
	}
	return nil
}

// decodeCommitInfo keeps what it can: the content is free text, so one odd
// field must not cost the table.
func decodeCommitInfo(raw json.RawMessage) *CommitInfo {
	info := &CommitInfo{}
	if json.Unmarshal(raw, info) == nil {
		return info
	}
	info = &CommitInfo{}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return info
	}
	for name, into := range map[string]any{
		"timestamp": &info.Timestamp, "inCommitTimestamp": &info.InCommitTimestamp, "operation": &info.Operation,
		"operationParameters": &info.OperationParameters, "readVersion": &info.ReadVersion, "isolationLevel": &info.IsolationLevel,
		"isBlindAppend": &info.IsBlindAppend, "operationMetrics": &info.OperationMetrics, "userMetadata": &info.UserMetadata,
		"engineInfo": &info.EngineInfo, "txnId": &info.TxnID, "tags": &info.Tags,
	} {
		if v, ok := fields[name]; ok {
			_ = json.Unmarshal(v, into) // an odd field stays empty
		}
	}
	return info
}

// encodeActions writes one action a line.
func encodeActions(actions []any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, a := range actions {
		if err := enc.Encode(a); err != nil {
			return nil, fault.Wrap(err, "DELTA_COMMIT_FAILED", "cannot encode the commit")
		}
	}
	return b.Bytes(), nil
}

// encode writes the actions in the order that readers like: commitInfo first.
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
	for i := range c.cdc {
		add("cdc", &c.cdc[i])
	}
	return encodeActions(lines)
}

// removal gives the remove action that takes f out of the table.
func (f *AddFile) removal(at int64, dataChange bool) RemoveFile {
	size := f.Size
	return RemoveFile{
		Path: f.Path, DeletionTimestamp: &at, DataChange: dataChange, ExtendedFileMetadata: true,
		PartitionValues: f.PartitionValues, Size: &size, Tags: f.Tags, DeletionVector: f.DeletionVector,
		BaseRowID: f.BaseRowID, DefaultRowCommitVersion: f.DefaultRowCommitVersion,
	}
}

// NumRecords gives the physical rows of the file as its statistics tell, if they do.
func (f *AddFile) NumRecords() (int64, bool) {
	const head = `{"numRecords":`
	if rest, ok := strings.CutPrefix(f.Stats, head); ok {
		var n int64
		for i := 0; i < len(rest) && i < 18; i++ {
			c := rest[i]
			if c < '0' || c > '9' {
				if i > 0 && (c == ',' || c == '}') {
					return n, true
				}
				break
			}
			n = n*10 + int64(c-'0')
		}
	}
	if f.Stats == "" {
		return 0, false
	}
	var stats struct {
		NumRecords *int64 `json:"numRecords"`
	}
	if json.Unmarshal([]byte(f.Stats), &stats) != nil || stats.NumRecords == nil || *stats.NumRecords < 0 {
		return 0, false
	}
	return *stats.NumRecords, true
}

// UniqueID tells the vectors of a file apart; it is empty for none.
func (d *DeletionVector) UniqueID() string { return d.id() }

// id tells vectors of one file apart.
func (d *DeletionVector) id() string {
	if d == nil {
		return ""
	}
	id := d.StorageType + d.PathOrInlineDv
	if d.Offset != nil {
		id += "@" + itoa(int64(*d.Offset))
	}
	return id
}
