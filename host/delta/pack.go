package delta

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// packing says which files OPTIMIZE rewrites.
type packing struct {
	target int64   // of a file
	purge  float64 // the share of deleted rows from which on a file is rewritten; above 1 none is
	most   int64   // bytes of the files that are rewritten together
	// cluster is the mark of files that are clustered by the table's columns, ""
	// when the table has none.
	cluster string
	all     bool // clustered files too
	auto    *AutoCompact
}

// smallShare is the share of the target below which a file is small.
const smallShare = 0.75

// clusteringProvider is our name in the files that we clustered, and
// clusterTag the tag that holds by which columns.
const (
	clusteringProvider = "weir"
	clusterTag         = "weir.clusteringColumns"
)

// bin is a set of files of one partition that are rewritten together, in this order.
type bin struct {
	files []AddFile
	bytes int64 // of their live rows, about
	rows  int64 // live ones, -1 when a file does not tell
}

// liveSize is about how many bytes of a file its live rows take, and whether
// enough of its rows are deleted for a purge.
func (p *packing) liveSize(f *AddFile) (bytes int64, purge bool) {
	if f.DeletionVector == nil {
		return f.Size, false
	}
	rows, ok := f.NumRecords()
	if !ok || rows <= 0 {
		return f.Size, p.purge <= 1 // how many rows are left is not known until it is rewritten
	}
	deleted := min(1, float64(f.DeletionVector.Cardinality)/float64(rows))
	return int64(float64(f.Size) * (1 - deleted)), deleted >= p.purge || deleted == 1
}

// bins picks the files to rewrite and packs them, partition by partition. A
// table whose bins were rewritten has none any more: of each partition at most
// one small file is left.
func (p *packing) bins(files []AddFile) []bin {
	type candidate struct {
		file AddFile
		size int64
	}
	if p.auto != nil {
		files = p.worthIt(files)
	}
	partitions := map[string][]candidate{}
	reason := map[string]bool{} // a partition with a file that is rewritten though it is alone
	for i := range files {
		f := &files[i]
		size, purge := p.liveSize(f)
		small := float64(size) < smallShare*float64(p.target)
		unclustered := false
		if p.cluster != "" {
			switch f.ClusteringProvider {
			case "":
				unclustered = true
			case clusteringProvider:
				// Those of other columns wait, as they would for other engines,
				// until all files are clustered anew.
				if unclustered = p.all; !p.all && f.Tags[clusterTag] != p.cluster {
					continue
				}
			default:
				continue // the protocol leaves them to the one who clustered them
			}
		}
		if !small && !purge && !unclustered {
			continue
		}
		key := partitionKey(f.PartitionValues)
		partitions[key] = append(partitions[key], candidate{*f, size})
		reason[key] = reason[key] || purge || unclustered
	}
	var out []bin
	for _, key := range slices.Sorted(maps.Keys(partitions)) {
		found := partitions[key]
		if len(found) < 2 && !reason[key] {
			continue
		}
		// Files of the same time hold rows that are asked for together.
		slices.SortFunc(found, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.file.ModificationTime, b.file.ModificationTime), compareFiles(&a.file, &b.file))
		})
		first := len(out)
		for _, c := range found {
			if last := len(out) - 1; last < first || out[last].bytes+c.size > p.most {
				out = append(out, bin{})
			}
			out[len(out)-1].take(c.file, c.size)
		}
	}
	return slices.DeleteFunc(out, func(b bin) bool { return len(b.files) == 1 && !p.alone(&b.files[0]) })
}

// worthIt picks the files that are rewritten without being asked: those of many
// small ones, and large ones with many deleted rows, as far as the bytes go.
func (p *packing) worthIt(files []AddFile) (out []AddFile) {
	small := map[string][]int64{}
	for i := range files {
		if p.isSmall(&files[i]) {
			key := partitionKey(files[i].PartitionValues)
			small[key] = append(small[key], files[i].Size)
		}
	}
	largest := map[string]int64{}
	for key, sizes := range small {
		largest[key] = p.auto.due(sizes)
	}
	left := p.auto.Bytes
	for i := range files {
		f := &files[i]
		worth := false
		if p.isSmall(f) {
			worth = f.Size <= largest[partitionKey(f.PartitionValues)]
		} else {
			_, worth = p.liveSize(f)
		}
		if worth && (len(out) == 0 || f.Size <= left) {
			out = append(out, *f)
			left -= f.Size
		}
	}
	return out
}

// due gives the size of the largest of small files that are to be packed, -1 when
// none are. A file is left out while it is large beside the others: it was made
// by an earlier packing, and rewriting it each time would cost the more the
// larger it gets. So a row is rewritten a few times on its way into a large file,
// and the files that wait are few (TestPackingByItselfCostsWhatTheWritesDo).
func (a *AutoCompact) due(sizes []int64) int64 {
	slices.Sort(sizes)
	sum, largest := int64(0), int64(-1)
	for i, size := range sizes {
		if sum += size; i+1 >= a.Least && size*int64(a.Least) <= 2*sum {
			largest = size
		}
	}
	return largest
}

func (p *packing) isSmall(f *AddFile) bool {
	return float64(f.Size) < p.auto.SmallRatio*float64(p.target)
}

// idle tells, without a copy of the files, that worthIt would pick none.
func (p *packing) idle(s *Snapshot) bool {
	small := map[string][]int64{}
	for f := range s.EachFile() {
		if p.isSmall(f) {
			key := partitionKey(f.PartitionValues)
			small[key] = append(small[key], f.Size)
		} else if _, purge := p.liveSize(f); purge {
			return false
		}
	}
	for _, sizes := range small {
		if p.auto.due(sizes) >= 0 {
			return false
		}
	}
	return true
}

// alone tells whether a file is worth being rewritten on its own.
func (p *packing) alone(f *AddFile) bool {
	_, purge := p.liveSize(f)
	return purge || p.cluster != "" && (p.all || f.ClusteringProvider == "")
}

func (b *bin) take(f AddFile, size int64) {
	b.files = append(b.files, f)
	b.bytes += size
	rows, ok := f.NumRecords()
	switch {
	case !ok || b.rows < 0:
		b.rows = -1
	case f.DeletionVector != nil:
		b.rows += max(0, rows-f.DeletionVector.Cardinality)
	default:
		b.rows += rows
	}
}

// divider cuts the rows of a bin into files of equal size near the target. What
// the files to be rewritten take tells how many rows that is, until the files
// made so far tell it better: many small files take less room as one.
type divider struct {
	target int64
	left   int64   // rows not in a finished file, -1 when not known
	each   float64 // bytes of a row
	least  int64   // rows before the file in the making is looked at again
}

func newDivider(b *bin, target int64) *divider {
	d := &divider{target: target, left: b.rows}
	if b.rows > 0 {
		d.each = float64(b.bytes) / float64(b.rows)
	}
	return d
}

// quota tells how many rows the file in the making shall have.
func (d *divider) quota() int64 { return max(d.least, d.share()) }

func (d *divider) share() int64 {
	if d.each <= 0 {
		return chunkRows // to learn by
	}
	if d.left <= 0 {
		return max(1, int64(float64(d.target)/d.each))
	}
	files := int64(math.Round(float64(d.left) * d.each / float64(d.target)))
	if files <= 1 {
		return math.MaxInt64
	}
	return (d.left + files - 1) / files
}

// ends tells whether the file in the making ends here, with so many rows and
// bytes. One that were small is not ended: it would be rewritten again.
func (d *divider) ends(rows, bytes int64) bool {
	d.each = float64(bytes) / float64(rows)
	const least = 0.8 // more than smallShare, so that a little less is not small
	if float64(bytes) < least*float64(d.target) {
		d.least = rows + rows/8 + 1
		return false
	}
	d.least = 0
	if d.left >= 0 {
		d.left = max(0, d.left-rows)
	}
	return true
}

// partitionKey tells partitions apart.
func partitionKey(values map[string]*string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(k)
		if v := values[k]; v != nil && *v != "" {
			b.WriteString("=" + *v)
		}
		b.WriteByte(0)
	}
	return b.String()
}

// batches groups bins into commits: of at most so many bytes, unless one bin has more.
func batches(bins []bin, most int64) [][]bin {
	var out [][]bin
	bytes := int64(0)
	for _, b := range bins {
		if len(out) == 0 || bytes+b.bytes > most {
			out, bytes = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], b)
		bytes += b.bytes
	}
	return out
}
