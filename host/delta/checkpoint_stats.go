package delta

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// checkpointStats says in which forms a checkpoint holds statistics and
// partition values.
type checkpointStats struct {
	json bool // as the string that the commits have
	// parsed, when not nil, has the columns stats_parsed and partitionValues_parsed.
	parsed *parsedColumns
}

// checkpointStats reads the properties that choose the forms. The struct is
// written only when the table asks for it: it about doubles the work, and who
// has the string needs it not.
func (s *Snapshot) checkpointStats(mem memory.Allocator) *checkpointStats {
	conf := s.metadata.Configuration
	out := &checkpointStats{json: !strings.EqualFold(conf["delta.checkpoint.writeStatsAsJson"], "false")}
	if strings.EqualFold(conf["delta.checkpoint.writeStatsAsStruct"], "true") {
		out.parsed = s.parsedColumns(mem)
	}
	return out
}

// fields are those of the add action behind its own.
func (c *checkpointStats) fields() []arrow.Field {
	if c.parsed == nil {
		return nil
	}
	return c.parsed.fields
}

// parsedColumns makes typed columns of the partition values and statistics of files.
type parsedColumns struct {
	mem        memory.Allocator
	leaves     []statsLeaf
	partitions []*field
	keys       []string // of the partitions in partitionValues
	fields     []arrow.Field
}

func (s *Snapshot) parsedColumns(mem memory.Allocator) *parsedColumns {
	p := &parsedColumns{mem: mem, leaves: s.statsLeaves()}
	var parts []arrow.Field
	for _, name := range s.metadata.PartitionColumns {
		i := slices.IndexFunc(s.schema.fields, func(f *field) bool { return f.name == name })
		f := s.schema.fields[i] // the snapshot was checked for that
		key := f.name
		if s.mapping != "none" {
			key = f.physicalName()
		}
		if prim, ok := f.typ.(*primitive); ok && !isVoid(prim) {
			p.partitions, p.keys, parts = append(p.partitions, f), append(p.keys, key), append(parts, optional(key, prim.arrow))
		}
	}
	if len(parts) > 0 {
		p.fields = append(p.fields, optional("partitionValues_parsed", structOf(parts...)))
	}
	stats := []arrow.Field{optional("numRecords", longType)}
	for _, part := range statsParts {
		if fields := p.tree(part, nil); len(fields) > 0 {
			stats = append(stats, optional(part.name, structOf(fields...)))
		}
	}
	stats = append(stats, optional("tightBounds", boolType))
	p.fields = append(p.fields, optional("stats_parsed", structOf(stats...)))
	return p
}

// statsPart is one of the objects in statistics that have a value for each column.
type statsPart struct {
	name   string
	offset int // of its sink among those of a leaf
}

var statsParts = []statsPart{{"minValues", 1}, {"maxValues", 2}, {"nullCount", 0}}

// below gives the names that come next below a path, in order, with the leaf where one ends.
func (p *parsedColumns) below(path []string) (names []string, leaf map[string]int) {
	leaf = map[string]int{}
	for i, l := range p.leaves {
		if len(l.stored) <= len(path) || !slices.Equal(l.stored[:len(path)], path) {
			continue
		}
		name := l.stored[len(path)]
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(l.stored) == len(path)+1 {
			leaf[name] = i
		}
	}
	return names, leaf
}

// tree gives the fields of a part below a path, nested as the schema is.
func (p *parsedColumns) tree(part statsPart, path []string) (out []arrow.Field) {
	names, leaf := p.below(path)
	for _, name := range names {
		if i, ok := leaf[name]; ok {
			switch {
			case part.offset == 0:
				out = append(out, optional(name, longType))
			case p.leaves[i].bounded:
				out = append(out, optional(name, p.leaves[i].typ))
			}
		} else if fields := p.tree(part, append(path[:len(path):len(path)], name)); len(fields) > 0 {
			out = append(out, optional(name, structOf(fields...)))
		}
	}
	return out
}

// columns makes the columns for some files. The caller releases them.
func (p *parsedColumns) columns(files []*AddFile) (out []arrow.Array, err error) {
	defer func() {
		if err != nil {
			releaseArrays(out)
		}
	}()
	if len(p.partitions) > 0 {
		values, err := p.partitionValues(files)
		if err != nil {
			return nil, err
		}
		arr, err := structArray(values, p.fields[0].Type)
		if err != nil {
			return nil, err
		}
		out = append(out, arr)
	}
	scanner := newStatsScanner(p.mem, p.leaves)
	defer scanner.release()
	scanner.reserve(len(files))
	for _, f := range files {
		scanner.scan(f.Stats)
	}
	flat := scanner.arrays()
	defer releaseArrays(flat)
	arr, err := p.stats(flat)
	if err != nil {
		return out, err
	}
	return append(out, arr), nil
}

// partitionValues makes a column for each partition column. A value that is
// none of its type is null here: the map beside it has it as it is.
func (p *parsedColumns) partitionValues(files []*AddFile) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(p.partitions))
	for i, part := range p.partitions {
		prim := part.typ.(*primitive)
		b := array.NewBuilder(p.mem, prim.arrow)
		b.Reserve(len(files))
		for _, f := range files {
			if err := appendPartition(b, f.PartitionValues[p.keys[i]], prim, 1); err != nil {
				b.AppendNull()
			}
		}
		out[i] = b.NewArray()
		b.Release()
	}
	return out, nil
}

// structArray puts columns together and takes them over.
func structArray(columns []arrow.Array, t arrow.DataType) (arrow.Array, error) {
	defer releaseArrays(columns)
	return array.NewStructArrayWithFields(columns, t.(*arrow.StructType).Fields())
}

// stats puts the columns of a scanner together as the schema is nested.
func (p *parsedColumns) stats(flat []arrow.Array) (arrow.Array, error) {
	t := p.fields[len(p.fields)-1].Type.(*arrow.StructType)
	columns := []arrow.Array{flat[sinkRecords]}
	flat[sinkRecords].Retain()
	for _, part := range statsParts {
		i, ok := t.FieldIdx(part.name)
		if !ok {
			continue
		}
		arr, err := p.part(part, nil, flat, t.Field(i).Type)
		if err != nil {
			releaseArrays(columns)
			return nil, err
		}
		columns = append(columns, arr)
	}
	flat[sinkTight].Retain()
	return structArray(append(columns, flat[sinkTight]), t)
}

func (p *parsedColumns) part(part statsPart, path []string, flat []arrow.Array, t arrow.DataType) (arrow.Array, error) {
	_, leaf := p.below(path)
	var columns []arrow.Array
	for _, f := range t.(*arrow.StructType).Fields() {
		if i, ok := leaf[f.Name]; ok {
			arr := flat[sinkLeaves+3*i+part.offset]
			arr.Retain()
			columns = append(columns, arr)
			continue
		}
		arr, err := p.part(part, append(path[:len(path):len(path)], f.Name), flat, f.Type)
		if err != nil {
			releaseArrays(columns)
			return nil, err
		}
		columns = append(columns, arr)
	}
	return structArray(columns, t)
}
