package ingest

import "sort"

// Position is a place in a source file.
type Position struct {
	File string
	// Line counts from 1: where the record begins. 0 is unknown.
	Line int64
	// Byte is the offset of the record in the (decompressed) file, -1 when no longer known.
	Byte int64
}

// recentRows bounds the rows whose bytes are remembered.
const recentRows = 1 << 20

// places remembers where rows came from: for all of them the file and the
// line, for the last ones the byte too.
type places struct {
	segments []placed
	blocks   []startBlock
	recent   int
}

// placed is a segment with the number of its first row in the read.
type placed struct {
	segment
	first int64
}

type startBlock struct {
	first  int64
	starts []uint32
}

func (p *places) add(first int64, parts []partial) {
	for _, part := range parts {
		for _, sg := range part.segments {
			if sg.rows > 0 {
				p.segments = append(p.segments, placed{sg, first + int64(sg.row)})
			}
		}
		if len(part.starts) > 0 {
			p.blocks = append(p.blocks, startBlock{first, part.starts})
			p.recent += len(part.starts)
		}
		first += int64(part.rows)
	}
	for len(p.blocks) > 1 && p.recent-len(p.blocks[0].starts) >= recentRows {
		p.recent -= len(p.blocks[0].starts)
		p.blocks = append([]startBlock(nil), p.blocks[1:]...)
	}
}

// find gives the segment of a row and its byte offset.
func (p *places) find(row int64) (*placed, int64) {
	i := sort.Search(len(p.segments), func(i int) bool { return p.segments[i].first > row }) - 1
	if i < 0 || row >= p.segments[i].first+int64(p.segments[i].rows) {
		return nil, -1
	}
	sg := &p.segments[i]
	at := int64(-1)
	if k := sort.Search(len(p.blocks), func(k int) bool { return p.blocks[k].first > row }) - 1; k >= 0 {
		if n := row - p.blocks[k].first; n < int64(len(p.blocks[k].starts)) {
			at = sg.offset + int64(p.blocks[k].starts[n])
		}
	}
	return sg, at
}

// lineOf gives the line of a row of the segment.
func (sg *placed) lineOf(row int64) int64 {
	at := int(row-sg.first) + sg.row
	k := sort.Search(len(sg.lines), func(k int) bool { return sg.lines[k].row > at }) - 1
	if k < 0 {
		return 0
	}
	run := sg.lines[k]
	return run.line + int64(at-run.row)*run.stride
}
