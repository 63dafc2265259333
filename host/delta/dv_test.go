package delta

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/weir-data/weir/host/fault"
)

// encodeDV writes rows the way the protocol says.
func encodeDV(rows ...uint64) []byte {
	buckets := map[uint32]*roaring.Bitmap{}
	for _, r := range rows {
		if buckets[uint32(r>>32)] == nil {
			buckets[uint32(r>>32)] = roaring.New()
		}
		buckets[uint32(r>>32)].Add(uint32(r))
	}
	keys := []uint32{}
	for k := range buckets {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a buffer takes all
	put(uint32(dvMagic))
	put(uint64(len(keys)))
	for _, k := range keys {
		put(k)
		buckets[k].RunOptimize()
		_, _ = buckets[k].WriteTo(&b)
	}
	return b.Bytes()
}

func TestDeletedRowsAreTheRunsInBetween(t *testing.T) {
	rows := []uint64{0, 1, 5, 9, 1 << 33, 1<<33 + 2}
	d, err := decodeDV(encodeDV(rows...), 6)
	if err != nil {
		t.Fatal(err)
	}
	if d.Last() != 1<<33+2 {
		t.Error(d.Last())
	}
	for _, c := range []struct {
		from, to int64
		want     string
	}{
		{0, 10, "[[2 5] [6 9]]"}, {0, 2, "[]"}, {2, 5, "[[0 3]]"}, {4, 7, "[[0 1] [2 3]]"}, {9, 12, "[[1 3]]"},
		{100, 200, "[[0 100]]"}, {1<<33 - 1, 1<<33 + 4, "[[0 1] [2 3] [4 5]]"}, {1<<32 - 2, 1<<32 + 2, "[[0 4]]"},
	} {
		if got := fmt.Sprint(d.live(c.from, c.to)); got != c.want {
			t.Errorf("[%d,%d): %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestDamagedVectorsAreRefused(t *testing.T) {
	good := encodeDV(1, 2, 3)
	change := func(at int, to byte) []byte {
		out := slices.Clone(good)
		out[at] = to
		return out
	}
	for name, c := range map[string]struct {
		data        []byte
		cardinality int64
	}{
		"empty": {nil, 0}, "another magic number": {change(0, 0), 3}, "cut": {good[:len(good)-1], 3}, "more rows than said": {good, 2}, "fewer": {good, 4},
		"too many buckets": {change(4, 200), 3}, "huge count of buckets": {change(11, 0x7f), 3}, "negative rows": {change(15, 0xff), 3},
	} {
		if d, err := decodeDV(c.data, c.cardinality); fault.CodeOf(err) != "DELTA_INVALID_DELETION_VECTOR" {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

func TestVectorsAreReadFromAllPlaces(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"s":"a"},{"s":"b"},{"s":"c"},{"s":"d"}]`)})
	raw := encodeDV(1, 3)
	file := []byte{dvVersion}
	for _, v := range [][]byte{encodeDV(0), raw} {
		file = binary.BigEndian.AppendUint32(file, uint32(len(v)))
		file = append(file, v...)
		file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(v))
	}
	second := int32(1 + 8 + len(encodeDV(0)))
	id := []byte("0123456789abcdef")
	name := fmt.Sprintf("deletion_vector_%x-%x-%x-%x-%x.bin", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	broken := slices.Clone(file)
	broken[len(broken)-1] ^= 1
	for path, data := range map[string][]byte{name: file, "ab/" + name: file, "broken/" + name: broken} {
		if err := f.store.Put(background, path, data); err != nil {
			t.Fatal(err)
		}
	}
	inline, uuid := encodeZ85(raw), encodeZ85(id)
	first := int32(1)
	for title, c := range map[string]struct {
		dv   DeletionVector
		want string // rows, or a code
	}{
		"inline":               {DeletionVector{StorageType: "i", PathOrInlineDv: inline}, "a c"},
		"in a file":            {DeletionVector{StorageType: "u", PathOrInlineDv: uuid, Offset: &second}, "a c"},
		"in a file, first":     {DeletionVector{StorageType: "u", PathOrInlineDv: uuid, Offset: &first, Cardinality: 1, SizeInBytes: int32(len(encodeDV(0)))}, "b c d"},
		"in a file, no offset": {DeletionVector{StorageType: "u", PathOrInlineDv: uuid, Cardinality: 1, SizeInBytes: int32(len(encodeDV(0)))}, "b c d"},
		"below a prefix":       {DeletionVector{StorageType: "u", PathOrInlineDv: "ab" + uuid, Offset: &second}, "a c"},
		"by absolute path":     {DeletionVector{StorageType: "p", PathOrInlineDv: "file://" + f.dir + "/" + name, Offset: &second}, "a c"},
		"wrong checksum":       {DeletionVector{StorageType: "u", PathOrInlineDv: "broken" + uuid, Offset: &second}, "DELTA_INVALID_DELETION_VECTOR"},
		"wrong size":           {DeletionVector{StorageType: "u", PathOrInlineDv: uuid, Offset: &second, SizeInBytes: int32(len(raw)) - 1}, "DELTA_INVALID_DELETION_VECTOR"},
		"file is gone":         {DeletionVector{StorageType: "u", PathOrInlineDv: "zz" + uuid, Offset: &second}, "DELTA_FILE_NOT_FOUND"},
		"unknown place":        {DeletionVector{StorageType: "r", PathOrInlineDv: inline}, "DELTA_UNSUPPORTED_FEATURE"},
		"no Z85":               {DeletionVector{StorageType: "i", PathOrInlineDv: "abcd~"}, "DELTA_INVALID_DELETION_VECTOR"},
		"Z85 overflows":        {DeletionVector{StorageType: "i", PathOrInlineDv: "#####"}, "DELTA_INVALID_DELETION_VECTOR"},
		"half a group":         {DeletionVector{StorageType: "i", PathOrInlineDv: inline[:7]}, "DELTA_INVALID_DELETION_VECTOR"},
		"past the end":         {DeletionVector{StorageType: "i", PathOrInlineDv: encodeZ85(encodeDV(1, 4))}, "DELTA_INVALID_DELETION_VECTOR"},
		"negative size":        {DeletionVector{StorageType: "i", PathOrInlineDv: inline, SizeInBytes: -1}, "DELTA_INVALID_DELETION_VECTOR"},
	} {
		t.Run(title, func(t *testing.T) {
			if c.dv.Cardinality == 0 {
				c.dv.Cardinality = 2
			}
			if c.dv.SizeInBytes == 0 {
				c.dv.SizeInBytes = int32(len(raw))
			}
			files, err := f.snapshot().Files(background)
			if err != nil {
				t.Fatal(err)
			}
			files[0].DeletionVector = &c.dv
			rows, err := scanRows(background, f.snapshot(), ScanOptions{Columns: []string{"s"}, Files: files, BatchRows: 3}, nil)
			got := fault.CodeOf(err)
			for _, r := range rows {
				got += map[bool]string{true: " "}[got != ""] + r[2:len(r)-1]
			}
			if got != c.want && fault.CodeOf(err) != c.want {
				t.Errorf("%q, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestTheExampleOfTheProtocol(t *testing.T) {
	// "ab^-aqEH.-t@S}K{vb[*k^" is the id in the protocol text.
	name, err := relativeDV("ab^-aqEH.-t@S}K{vb[*k^")
	if err != nil || name != "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin" {
		t.Errorf("%s, %v", name, err)
	}
}

func FuzzDeletionVector(f *testing.F) {
	f.Add(encodeDV(1, 2, 3), int64(3))
	f.Add(encodeDV(0, 1<<40), int64(2))
	f.Add(encodeDV(), int64(0))
	if raw, err := base64.StdEncoding.DecodeString("0dIOZAEAAAAAAAAAAAAAADowAAABAAAAAAAAABAAAAAFAA=="); err == nil {
		f.Add(raw, int64(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, cardinality int64) {
		frugally(t, len(data), func() {
			d, err := decodeDV(data, cardinality)
			if err != nil {
				if fault.CodeOf(err) == "" {
					t.Errorf("no code: %v", err)
				}
				return
			}
			// The runs of any window and the deleted rows in it make up the window.
			last := d.Last()
			live := int64(0)
			for _, r := range d.live(0, 1000) {
				live += r[1] - r[0]
			}
			if last < 1000 && live+cardinality != 1000 {
				t.Errorf("%d live, %d deleted", live, cardinality)
			}
		})
	})
}
