package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// encodeRows gives the portable form of a set: magic number, count of buckets,
// and each bucket behind its upper bits. All numbers are little-endian.
func encodeRows(rows *RowSet) ([]byte, error) {
	var b bytes.Buffer
	n := uint64(0)
	for _, bucket := range rows.buckets {
		if !bucket.low.IsEmpty() {
			n++
		}
	}
	head := binary.LittleEndian.AppendUint32(nil, dvMagic)
	b.Write(binary.LittleEndian.AppendUint64(head, n))
	for _, bucket := range rows.buckets {
		if bucket.low.IsEmpty() {
			continue
		}
		b.Write(binary.LittleEndian.AppendUint32(nil, bucket.high))
		low := bucket.low.Clone() // optimizing changes it
		low.RunOptimize()
		if _, err := low.WriteTo(&b); err != nil {
			return nil, fault.Wrap(err, "DELTA_WRITE_FAILED", "deletion vector")
		}
	}
	return b.Bytes(), nil
}

// encodeZ85 encodes groups of four bytes to five characters; the last group is filled up with zeros.
func encodeZ85(data []byte) string {
	out := make([]byte, 0, (len(data)+3)/4*5)
	for len(data) > 0 {
		var bytes [4]byte
		data = data[copy(bytes[:], data):]
		n := binary.BigEndian.Uint32(bytes[:])
		var group [5]byte
		for i := 4; i >= 0; i-- {
			group[i] = z85[n%85]
			n /= 85
		}
		out = append(out, group[:]...)
	}
	return string(out)
}

// vectorFile is a file of deletion vectors that is being written, for all files of one commit.
type vectorFile struct {
	id   uuid.UUID
	name string
	w    storage.Writer
	size int64
}

func (t *Table) createVectors(ctx context.Context) (*vectorFile, error) {
	v := &vectorFile{id: uuid.New(), size: dvFirst}
	v.name = vectorName(v.id)
	var err error
	if v.w, err = t.store.Create(ctx, v.name); err != nil {
		return nil, err
	}
	if _, err = v.w.Write([]byte{dvVersion}); err != nil {
		return nil, errors.Join(err, v.w.Abort())
	}
	return v, nil
}

// add appends a vector: size, bytes and checksum, big-endian.
func (v *vectorFile) add(rows *RowSet) (*DeletionVector, error) {
	data, err := encodeRows(rows)
	if err != nil {
		return nil, err
	}
	if v.size+int64(len(data))+8 > math.MaxInt32 {
		return nil, fault.New("DELTA_WRITE_FAILED", "the deletion vectors of the commit take more than 2 GiB").
			WithHint("Delete in several commits, or rewrite the files")
	}
	framed := binary.BigEndian.AppendUint32(make([]byte, 0, len(data)+8), uint32(len(data)))
	framed = append(framed, data...)
	framed = binary.BigEndian.AppendUint32(framed, crc32.ChecksumIEEE(data))
	if _, err := v.w.Write(framed); err != nil {
		return nil, err
	}
	offset := int32(v.size)
	v.size += int64(len(framed))
	return &DeletionVector{
		StorageType: "u", PathOrInlineDv: encodeZ85(v.id[:]), Offset: &offset,
		SizeInBytes: int32(len(data)), Cardinality: rows.Len(),
	}, nil
}
