package delta

import (
	"cmp"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

const (
	// maxBatchBytes is about how much a batch of a scan holds: large rows come by fewer.
	maxBatchBytes = 32 << 20
	// At most maxProbe and, in files of large chunks, at least minProbe rows of a
	// file come first when only reading them tells how large they are: a
	// dictionary stores once what many rows have. Then batches grow by the factor.
	minProbe, maxProbe, paceFactor = 16, 1024, 32
	// A file with larger column chunks is read through buffers, not by whole chunks.
	largeChunk  = 16 << 20
	chunkBuffer = 2 << 20
)

// pace tells how many rows of a file make up a batch.
type pace struct {
	stored int64 // bytes of a row of the wanted columns, as the footer has it
	perRow int64 // of what was read last
	probe  int64 // how many rows may be read before more is known; 0: all
}

// want adds columns that will be read.
func (p *pace) want(r *file.Reader, leaves map[int]bool) {
	for leaf := range leaves {
		col := r.MetaData().Schema.Column(leaf)
		most, chunkSize := int64(0), int64(1)
		for g := range r.NumRowGroups() {
			group := r.MetaData().RowGroup(g)
			if chunk, err := group.ColumnChunk(leaf); err == nil && group.NumRows() > 0 {
				chunkSize = max(chunkSize, chunk.TotalUncompressedSize())
				most = max(most, chunk.TotalUncompressedSize()/group.NumRows())
			}
		}
		p.stored += min(max(most, int64(col.TypeLength())), maxBatchBytes)
		if col.PhysicalType() == parquet.Types.ByteArray || col.MaxRepetitionLevel() > 0 {
			// No value of a dictionary is larger than the chunk that holds it.
			probe := min(max(maxBatchBytes/chunkSize, minProbe), maxProbe)
			p.probe = min(cmp.Or(p.probe, probe), probe)
		}
	}
}

// rows gives how many of the next n rows to read.
func (p *pace) rows(n int64) int64 {
	if p.probe > 0 {
		n = min(n, p.probe)
	}
	if size := max(p.stored, p.perRow); size > 0 {
		n = min(n, max(maxBatchBytes/size, 1))
	}
	return n
}

// took notes what was read.
func (p *pace) took(cols []arrow.Array, rows int64) {
	size := int64(0)
	for _, c := range cols {
		size += arrayBytes(c, 0, int64(c.Len()))
	}
	p.perRow = size / max(rows, 1)
	p.probe *= paceFactor
	if p.probe > defaultBatchRows {
		p.probe = 0
	}
}

// streamLargeChunks makes the reader of a file take large column chunks piece by
// piece. Others are read at once, which is one request to the store.
func streamLargeChunks(r *file.Reader, props *parquet.ReaderProperties) {
	for g := range r.NumRowGroups() {
		group := r.MetaData().RowGroup(g)
		for i := range group.NumColumns() {
			if chunk, err := group.ColumnChunk(i); err == nil && chunk.TotalCompressedSize() > largeChunk {
				props.BufferedStreamEnabled, props.BufferSize = true, chunkBuffer
				return
			}
		}
	}
}
