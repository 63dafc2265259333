package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

const (
	dvMagic     = 1681511377
	dvVersion   = 1
	dvFirst     = 1 // the first vector of a file starts after the version byte
	maxInlineDV = 1 << 20
)

func invalidDV(format string, args ...any) *fault.Error {
	return fault.New("DELTA_INVALID_DELETION_VECTOR", format, args...)
}

// decodeDV decodes the portable form. It checks that the bytes hold exactly cardinality positions.
func decodeDV(data []byte, cardinality int64) (rows *RowSet, err error) {
	defer guard(&err, "DELTA_INVALID_DELETION_VECTOR", "the vector")
	if len(data) < 12 {
		return nil, invalidDV("%d bytes are too few", len(data))
	}
	if magic := binary.LittleEndian.Uint32(data); magic != dvMagic {
		return nil, invalidDV("magic number %d is unknown", magic)
	}
	n := binary.LittleEndian.Uint64(data[4:])
	rest := data[12:]
	// The least bucket, an empty bitmap behind its key, takes 12 bytes.
	if n > uint64(len(rest))/12+1 {
		return nil, invalidDV("%d buckets do not fit into %d bytes", n, len(rest))
	}
	rows = &RowSet{}
	for i := range n {
		if len(rest) < 4 {
			return nil, invalidDV("bucket %d of %d is missing", i, n)
		}
		b := rowBucket{binary.LittleEndian.Uint32(rest), roaring.New()}
		if i > 0 && b.high <= rows.buckets[i-1].high {
			return nil, invalidDV("buckets are out of order")
		}
		read, err := b.low.ReadFrom(bytes.NewReader(rest[4:]))
		if err != nil {
			return nil, fault.Wrap(err, "DELTA_INVALID_DELETION_VECTOR", "bucket %d", i)
		}
		if err := b.low.Validate(); err != nil && !b.low.IsEmpty() {
			return nil, fault.Wrap(err, "DELTA_INVALID_DELETION_VECTOR", "bucket %d", i)
		}
		if b.high > math.MaxInt32 {
			return nil, invalidDV("a position is negative")
		}
		rest = rest[4+read:]
		rows.buckets = append(rows.buckets, b)
	}
	if n := rows.Len(); n != cardinality {
		return nil, invalidDV("it holds %d rows, the log says %d", n, cardinality)
	}
	return rows, nil
}

// DeletedRows reads which rows of a file are deleted; nil when none are.
func (t *Table) DeletedRows(ctx context.Context, f *AddFile) (*RowSet, error) {
	if f.DeletionVector == nil {
		return nil, nil
	}
	rows, err := t.loadDV(ctx, f.DeletionVector)
	return rows, fault.Place(err, "DELTA_INVALID_DELETION_VECTOR", fault.Where{File: f.Path})
}

// DeletedRows reads which rows of a file of the table are deleted; nil when none are.
func (s *Snapshot) DeletedRows(ctx context.Context, f *AddFile) (*RowSet, error) {
	return s.table.DeletedRows(ctx, f)
}

// loadDV reads a vector from where its descriptor points.
func (t *Table) loadDV(ctx context.Context, dv *DeletionVector) (*RowSet, error) {
	if dv.SizeInBytes < 0 || dv.Cardinality < 0 {
		return nil, invalidDV("size %d and cardinality %d", dv.SizeInBytes, dv.Cardinality)
	}
	switch dv.StorageType {
	case "i":
		data, err := decodeInlineDV(dv)
		if err != nil {
			return nil, err
		}
		return decodeDV(data, dv.Cardinality)
	case "u":
		name, err := relativeDV(dv.PathOrInlineDv)
		if err != nil {
			return nil, err
		}
		return t.loadStoredDV(ctx, escapePath(name), dv)
	case "p":
		return t.loadStoredDV(ctx, dv.PathOrInlineDv, dv)
	}
	return nil, unsupported("deletion vectors of storage type %q", dv.StorageType)
}

func decodeInlineDV(dv *DeletionVector) ([]byte, error) {
	if len(dv.PathOrInlineDv) > maxInlineDV {
		return nil, invalidDV("an inline vector of %d characters", len(dv.PathOrInlineDv))
	}
	data, err := decodeZ85(dv.PathOrInlineDv)
	if err != nil {
		return nil, err
	}
	if int(dv.SizeInBytes) > len(data) {
		return nil, invalidDV("it holds %d bytes, the log says %d", len(data), dv.SizeInBytes)
	}
	return data[:dv.SizeInBytes], nil
}

// relativeDV gives the name of the file for storage type u: an optional folder,
// then the UUID as 20 characters of Z85.
func relativeDV(s string) (string, error) {
	if len(s) < 20 {
		return "", invalidDV("%q holds no UUID", s)
	}
	raw, err := decodeZ85(s[len(s)-20:])
	if err != nil {
		return "", err
	}
	id, err := uuid.FromBytes(raw)
	if err != nil {
		return "", fault.Wrap(err, "DELTA_INVALID_DELETION_VECTOR", "%q", s)
	}
	name := vectorName(id)
	if prefix := s[:len(s)-20]; prefix != "" {
		name = prefix + "/" + name
	}
	return name, nil
}

func vectorName(id uuid.UUID) string { return fmt.Sprintf("deletion_vector_%s.bin", id) }

// loadStoredDV reads one vector of a file: size, bytes, checksum.
func (t *Table) loadStoredDV(ctx context.Context, uri string, dv *DeletionVector) (*RowSet, error) {
	o, err := t.openFile(ctx, uri)
	if err != nil {
		return nil, err
	}
	offset := int64(dvFirst)
	if dv.Offset != nil {
		offset = int64(*dv.Offset)
	}
	rows, err := readDV(o, o.Size(), offset, dv)
	if err = errors.Join(err, o.Close()); err != nil {
		return nil, fault.Place(err, "DELTA_INVALID_DELETION_VECTOR", fault.Where{File: uri})
	}
	return rows, nil
}

func readDV(r io.ReaderAt, size, offset int64, dv *DeletionVector) (*RowSet, error) {
	total := int64(dv.SizeInBytes) + 8
	if offset < 0 || offset+total > size {
		return nil, invalidDV("%d bytes at %d do not fit into a file of %d", total, offset, size)
	}
	var version [1]byte
	if _, err := r.ReadAt(version[:], 0); err != nil || version[0] != dvVersion {
		return nil, invalidDV("version %d of the file is unknown (%v)", version[0], err)
	}
	buf := make([]byte, total)
	if _, err := r.ReadAt(buf, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.Wrap(err, "DELTA_INVALID_DELETION_VECTOR", "reading")
	}
	if n := binary.BigEndian.Uint32(buf); int64(n) != int64(dv.SizeInBytes) {
		return nil, invalidDV("the file says %d bytes, the log %d", n, dv.SizeInBytes)
	}
	data := buf[4 : total-4]
	if sum := binary.BigEndian.Uint32(buf[total-4:]); sum != crc32.ChecksumIEEE(data) {
		return nil, invalidDV("the checksum is wrong")
	}
	return decodeDV(data, dv.Cardinality)
}

const z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decodeZ85 decodes groups of five characters to four bytes. delta-rs and other
// users of the Rust crate z85 do not pad bytes with zeros, as the protocol asks:
// there a last group that begins with k times # holds 4-k bytes. Read as Z85
// such a group overflows, so the two cannot be mixed up.
func decodeZ85(s string) ([]byte, error) {
	if len(s)%5 != 0 {
		return nil, invalidDV("%d characters are no whole groups of Z85", len(s))
	}
	out := make([]byte, 0, len(s)/5*4)
	for i := 0; i < len(s); i += 5 {
		n, group, bytes := uint64(0), s[i:i+5], 4
		if rest := strings.TrimLeft(group, "#"); i+5 == len(s) && len(rest) >= 2 {
			bytes -= 5 - len(rest)
			group = rest
		}
		for _, c := range []byte(group) {
			v := strings.IndexByte(z85, c)
			if v < 0 {
				return nil, invalidDV("%q is no character of Z85", c)
			}
			n = n*85 + uint64(v)
		}
		if n >= 1<<(8*bytes) {
			return nil, invalidDV("group %q of Z85 overflows", s[i:i+5])
		}
		for bytes--; bytes >= 0; bytes-- {
			out = append(out, byte(n>>(8*bytes)))
		}
	}
	return out, nil
}
