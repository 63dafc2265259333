package delta

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

const (
	// maxBatchBytes is about how much a batch of a scan holds: large rows come by fewer.
	maxBatchBytes = 32 << 20
	// probeRows is how many rows of a file come first, when only reading them
	// tells how large they are: a dictionary stores once what many rows have.
	probeRows = 1024
	// A file with larger column chunks is read through buffers, not by whole chunks.
	largeChunk  = 16 << 20
	chunkBuffer = 2 << 20
)

// pace tells how many rows of a file make up a batch.
type pace struct {
	stored int64 // bytes of a row of the wanted columns, as the footer has it
	perRow int64 // of what was read last; 0 when nothing was
	varies bool
}

// want adds columns that will be read.
func (p *pace) want(r *file.Reader, leaves map[int]bool) {
	for leaf := range leaves {
		col := r.MetaData().Schema.Column(leaf)
		p.varies = p.varies || col.PhysicalType() == parquet.Types.ByteArray || col.MaxRepetitionLevel() > 0
		most := int64(0)
		for g := range r.NumRowGroups() {
			group := r.MetaData().RowGroup(g)
			if chunk, err := group.ColumnChunk(leaf); err == nil && group.NumRows() > 0 {
				most = max(most, chunk.TotalUncompressedSize()/group.NumRows())
			}
		}
		p.stored += max(most, int64(col.TypeLength()))
	}
}

// rows gives how many of the next n rows to read.
func (p *pace) rows(n int64) int64 {
	if p.perRow == 0 && p.varies {
		n = min(n, probeRows)
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
	p.perRow = max(size/max(rows, 1), 1)
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
