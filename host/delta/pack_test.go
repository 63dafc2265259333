package delta

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// packed describes a file for the packing: partition, size, rows, deleted rows, clustered by whom and what.
func packed(name, partition string, size, rows, deleted int64, provider, columns string) AddFile {
	f := AddFile{Path: name, Size: size, PartitionValues: map[string]*string{}, ClusteringProvider: provider}
	if partition != "" {
		f.PartitionValues["p"] = &partition
	}
	if rows >= 0 {
		f.Stats = fmt.Sprintf(`{"numRecords":%d}`, rows)
	}
	if deleted > 0 {
		f.DeletionVector = &DeletionVector{StorageType: "u", PathOrInlineDv: name, Cardinality: deleted}
	}
	if columns != "" {
		f.Tags = map[string]string{clusterTag: columns}
	}
	return f
}

func binNames(bins []bin) string {
	var out []string
	for _, b := range bins {
		var names []string
		for _, f := range b.files {
			names = append(names, f.Path)
		}
		out = append(out, strings.Join(names, "+"))
	}
	return strings.Join(out, " ")
}

func TestBinsHoldWhatIsWorthRewriting(t *testing.T) {
	small := func(name, partition string) AddFile { return packed(name, partition, 10, 10, 0, "", "") }
	for name, c := range map[string]struct {
		packing
		files []AddFile
		want  string
	}{
		"small files of one partition":     {packing{}, []AddFile{small("a", "1"), small("b", "1"), small("c", "2")}, "a+b"},
		"a lone small file stays":          {packing{}, []AddFile{small("a", "")}, ""},
		"null and empty are one partition": {packing{}, []AddFile{small("a", ""), {Path: "b", Size: 1, PartitionValues: map[string]*string{"p": new(string)}}, {Path: "c", Size: 1, PartitionValues: map[string]*string{"p": nil}}}, "b+c"},
		"good files stay":                  {packing{}, []AddFile{packed("a", "", 75, 10, 0, "", ""), packed("b", "", 74, 10, 0, "", ""), packed("c", "", 300, 10, 0, "", ""), small("d", "")}, "b+d"},
		"deleted rows make a file small":   {packing{purge: 2}, []AddFile{packed("a", "", 100, 10, 5, "", ""), small("b", "")}, "a+b"},
		"vectors are purged from a ratio on": {packing{purge: 0.2},
			[]AddFile{packed("a", "", 200, 10, 2, "", ""), packed("b", "", 200, 10, 1, "", "")}, "a"},
		"a vector of unknown share is purged": {packing{purge: 0.5}, []AddFile{packed("a", "", 200, -1, 1, "", "")}, "a"},
		"none is purged":                      {packing{purge: 2}, []AddFile{packed("a", "", 200, 10, 9, "", ""), packed("b", "", 200, -1, 1, "", "")}, ""},
		"a file without a live row goes":      {packing{purge: 2}, []AddFile{packed("a", "", 200, 10, 10, "", "")}, "a"},
		"bins are bounded":                    {packing{most: 25}, []AddFile{small("a", ""), small("b", ""), small("c", ""), small("d", ""), small("e", "")}, "a+b c+d"},
		"unclustered files are clustered":     {packing{cluster: "x"}, []AddFile{packed("a", "", 200, 1, 0, "", "")}, "a"},
		"clustered files are good":            {packing{cluster: "x"}, []AddFile{packed("a", "", 200, 1, 0, "weir", "x"), packed("b", "", 20, 1, 0, "weir", "x")}, ""},
		"small clustered files are packed":    {packing{cluster: "x"}, []AddFile{packed("a", "", 20, 1, 0, "weir", "x"), packed("b", "", 20, 1, 0, "weir", "x")}, "a+b"},
		"others' clustered files stay theirs": {packing{cluster: "x"}, []AddFile{packed("a", "", 20, 1, 0, "liquid", ""), packed("b", "", 20, 1, 0, "liquid", "")}, ""},
		"clustered by other columns waits":    {packing{cluster: "x"}, []AddFile{packed("a", "", 20, 1, 0, "weir", "y"), packed("b", "", 20, 1, 0, "weir", "y")}, ""},
		"all are clustered anew":              {packing{cluster: "x", all: true}, []AddFile{packed("a", "", 200, 1, 0, "weir", "y"), packed("b", "", 200, 1, 0, "weir", "x"), packed("c", "", 200, 1, 0, "liquid", "")}, "a+b"},
		"by itself, few small files stay": {packing{auto: &AutoCompact{SmallRatio: 0.25, Least: 3, Bytes: 1000}},
			[]AddFile{small("a", "1"), small("b", "1"), small("c", "2"), packed("d", "1", 25, 10, 0, "", "")}, ""},
		"by itself, many are packed": {packing{auto: &AutoCompact{SmallRatio: 0.25, Least: 3, Bytes: 1000}},
			[]AddFile{small("a", "1"), small("b", "1"), packed("c", "1", 10, 10, 9, "", ""), small("d", "2"), packed("e", "1", 25, 10, 0, "", "")}, "a+b+c"},
		"by itself, a large file is purged and a small one is not": {packing{purge: 0.3, auto: &AutoCompact{SmallRatio: 0.25, Least: 3, Bytes: 1000}},
			[]AddFile{packed("a", "", 25, 10, 3, "", ""), packed("b", "", 25, 10, 2, "", ""), packed("c", "", 24, 10, 9, "", "")}, "a"},
		"by itself, as far as the bytes go": {packing{purge: 0.3, auto: &AutoCompact{SmallRatio: 0.25, Least: 2, Bytes: 50}},
			[]AddFile{packed("a", "", 200, 10, 8, "", ""), packed("b", "", 200, 10, 8, "", "")}, "a"},
	} {
		p := c.packing
		p.target = 100
		if p.most == 0 {
			p.most = 1000
		}
		if p.purge == 0 {
			p.purge = 0.05
		}
		if got := binNames(p.bins(c.files)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Property: made into files of the sizes that the divider says, any set of files
// needs no second rewriting once a few rounds are over, whatever the estimate
// was worth; files but the last of a bin are near the target.
func TestPackingComesToAnEnd(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 13))
		p := packing{target: 1000, purge: 0.3, most: 1000 * (1 + r.Int64N(6))}
		real := 0.2 + 1.5*r.Float64() // bytes of a row as it will be written
		var files []AddFile
		live := int64(0)
		for i := range r.IntN(40) {
			rows := 1 + r.Int64N(2000)
			deleted := int64(0)
			if r.IntN(3) == 0 {
				deleted = r.Int64N(rows + 1)
			}
			size := 1 + int64(float64(rows)*(0.3+r.Float64()))
			f := packed(fmt.Sprint("f", i), fmt.Sprint(r.IntN(2)), size, rows, deleted, "", "")
			live += rows - deleted
			files = append(files, f)
		}
		round := 0
		for ; ; round++ {
			bins := p.bins(files)
			if len(bins) == 0 {
				break
			}
			if round > 6 {
				t.Fatalf("seed %d: no end: %s", seed, binNames(bins))
			}
			for n, b := range bins {
				for _, f := range b.files {
					i := slices.IndexFunc(files, func(x AddFile) bool { return x.Path == f.Path })
					files = slices.Delete(files, i, i+1)
				}
				made := rewriteModel(&b, p.target, real)
				for k, rows := range made {
					size := int64(float64(rows) * real)
					if k+1 < len(made) && (float64(size) < 0.79*float64(p.target) || float64(size) > 1.6*float64(p.target) && round > 0) {
						t.Errorf("seed %d: file %d of %d has %d bytes", seed, k, len(made), size)
					}
					f := packed(fmt.Sprintf("r%d-%d-%d", round, n, k), *b.files[0].PartitionValues["p"], size, rows, 0, "", "")
					files = append(files, f)
				}
			}
		}
		after := int64(0)
		for i := range files {
			rows, _ := files[i].NumRecords()
			after += rows
			if dv := files[i].DeletionVector; dv != nil {
				after -= dv.Cardinality
			}
		}
		if after != live {
			t.Errorf("seed %d: %d rows, were %d", seed, after, live)
		}
	}
}

// rewriteModel gives the rows of the files that a bin becomes when a row takes so many bytes.
func rewriteModel(b *bin, target int64, each float64) (made []int64) {
	d := newDivider(b, target)
	left, rows := b.rows, int64(0)
	for left > 0 {
		step := min(left, max(1, d.quota()-rows))
		rows, left = rows+step, left-step
		if left > 0 && rows >= d.quota() && d.ends(rows, int64(float64(rows)*each)) {
			made, rows = append(made, rows), 0
		}
	}
	if rows > 0 {
		made = append(made, rows)
	}
	return made
}

func TestFilesOfABinAreOfOneSize(t *testing.T) {
	b := bin{bytes: 10_450, rows: 1045}
	made := rewriteModel(&b, 1000, 10)
	if len(made) != 10 || slices.Min(made) < 100 || slices.Max(made) > 105 {
		t.Errorf("%v", made)
	}
	// Small files waste room: they become fewer files, not smaller ones.
	if made = rewriteModel(&bin{bytes: 10_450, rows: 1045}, 1000, 4); len(made) != 4 || slices.Min(made) < 200 || slices.Max(made) > 300 {
		t.Errorf("%v", made)
	}
}

func TestCommitsOfAnOptimizeAreBounded(t *testing.T) {
	bins := []bin{{bytes: 5}, {bytes: 5}, {bytes: 1}, {bytes: 30}, {bytes: 2}}
	var sizes []int
	for _, batch := range batches(bins, 10) {
		sizes = append(sizes, len(batch))
	}
	if !slices.Equal(sizes, []int{2, 1, 1, 1}) {
		t.Errorf("%v", sizes)
	}
}

// Property: however large the files are that writes leave, packing by itself
// keeps them few and rewrites each byte a few times at most, on the whole.
func TestPackingByItselfCostsWhatTheWritesDo(t *testing.T) {
	const target, ratio, least = 128 << 20, 0.25, 17
	for name, next := range map[string]func(r *rand.Rand) int64{
		"equal files":  func(*rand.Rand) int64 { return 200 << 10 },
		"tiny files":   func(*rand.Rand) int64 { return 3 << 10 },
		"any files":    func(r *rand.Rand) int64 { return 1 + r.Int64N(1<<20) },
		"mixed files":  func(r *rand.Rand) int64 { return 1 << r.IntN(24) },
		"now and then": func(r *rand.Rand) int64 { return []int64{10 << 10, 10 << 10, 10 << 10, 20 << 20}[r.IntN(4)] },
	} {
		r := rand.New(rand.NewPCG(7, 8))
		p := packing{target: target, purge: 0.3, most: target, auto: &AutoCompact{SmallRatio: ratio, Least: least, Bytes: 256 << 20}}
		var files []AddFile
		written, rewritten, most := int64(0), int64(0), 0
		for i := range 6_000 {
			size := next(r)
			written += size
			files = append(files, packed(fmt.Sprint(i), "", size, 10, 0, "", ""))
			for n, b := range p.bins(files) {
				files = slices.DeleteFunc(files, func(f AddFile) bool {
					return slices.ContainsFunc(b.files, func(g AddFile) bool { return f.Path == g.Path })
				})
				rewritten += b.bytes
				files = append(files, packed(fmt.Sprint("packed ", i, n), "", b.bytes, 10, 0, "", ""))
			}
			small := 0
			for j := range files {
				if p.isSmall(&files[j]) {
					small++
				}
			}
			most = max(most, small)
			if small == len(files) || i%100 == 0 { // those that are large are of no more interest
				files = slices.DeleteFunc(files, func(f AddFile) bool { return !p.isSmall(&f) })
			}
		}
		t.Logf("%s: %d small files at most, each byte rewritten %.1f times", name, most, float64(rewritten)/float64(written))
		if most > 6*least {
			t.Errorf("%s: %d small files", name, most)
		}
		if rewritten > 4*written {
			t.Errorf("%s: %d bytes were written, %d rewritten", name, written, rewritten)
		}
	}
}
