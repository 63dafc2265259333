//go:build !wasip1

package weirtest

import (
	"fmt"

	"github.com/weir-data/weir/sdk/go"
	"github.com/weir-data/weir/sdk/go/internal/flatbuf"
	"github.com/weir-data/weir/sdk/go/internal/host"
	"github.com/weir-data/weir/sdk/go/internal/seam"
)

// Row is the values of one row: nil, bool, numbers, text (also for decimals, dates, timestamps and
// binaries), []any for arrays, map[string]any for structs, []Entry for maps.
type Row []any

// Entry is one entry of a map value.
type Entry struct{ Key, Value any }

// Input is a table that a function reads.
type Input struct {
	fields []weir.Field
	rows   []Row
	size   int
	err    error
}

// Table makes an input from a list of columns, "order_id string, amount decimal(18,2)", and rows.
func Table(columns string, rows ...Row) *Input {
	fields, err := weir.ParseColumns(columns)
	in := &Input{fields: fields, rows: rows, size: max(len(rows), 1), err: err}
	for i, r := range rows {
		if err == nil && len(r) != len(fields) {
			in.err = fmt.Errorf("row %d has %d values for %d columns", i, len(r), len(fields))
		}
	}
	return in
}

// Batches cuts the table into batches of at most size rows. A function must not care.
func (in *Input) Batches(size int) *Input {
	cut := *in
	cut.size = max(size, 1)
	return &cut
}

// project gives the table with only the named columns, as a manifest's projection does.
func (in *Input) project(names []string) (*Input, error) {
	out := &Input{size: in.size, rows: make([]Row, len(in.rows))}
	for _, name := range names {
		at := in.index(name)
		if at < 0 {
			return nil, fmt.Errorf("the input has no column %s, which the function reads", name)
		}
		out.fields = append(out.fields, in.fields[at])
		for i, r := range in.rows {
			out.rows[i] = append(out.rows[i], r[at])
		}
	}
	return out, nil
}

func (in *Input) index(name string) int {
	for i, f := range in.fields {
		if f.Name == name {
			return i
		}
	}
	return -1
}

// messages encodes the table as the IPC messages a host sends.
func (in *Input) messages() ([][]byte, error) {
	rec := &recorder{}
	before := host.Use(rec)
	defer host.Use(before)
	err := seam.Run(func(c *weir.Call) error {
		out := c.Output()
		for _, f := range in.fields {
			out.Column(f.Name).SetType(f.Type)
		}
		for start := 0; start < len(in.rows); start += in.size {
			part := in.rows[start:min(start+in.size, len(in.rows))]
			for i, row := range part {
				for j, f := range in.fields {
					if err := appendValue(out.Column(f.Name), f.Type, row[j]); err != nil {
						return fmt.Errorf("row %d, column %s: %w", start+i, f.Name, err)
					}
				}
			}
			if err := out.FlushRows(len(part)); err != nil {
				return err
			}
		}
		return nil
	}, 0)
	if err != nil {
		return nil, err
	}
	return rec.messages, nil
}

// recorder keeps the messages that are written to output 0.
type recorder struct {
	host.Absent
	messages [][]byte
}

func (r *recorder) OutputWrite(_ int, p []byte) int32 {
	messages, err := split(p)
	if err != nil {
		return -1
	}
	r.messages = append(r.messages, messages...)
	return 0
}

// split cuts what a guest wrote at once into its messages, copied; end-of-stream markers go.
func split(p []byte) (messages [][]byte, err error) {
	for len(p) > 0 {
		if len(p) < 8 || flatbuf.U32(p) != 0xFFFFFFFF {
			return nil, fmt.Errorf("no message starts at the last %d bytes", len(p))
		}
		size := int64(flatbuf.U32(p[4:]))
		if size == 0 {
			p = p[8:]
			continue
		}
		if 8+size > int64(len(p)) {
			return nil, fmt.Errorf("a message of %d bytes of metadata is cut short", size)
		}
		size += 8 + flatbuf.Root(p[8:8+size]).Int64(3)
		if size > int64(len(p)) {
			return nil, fmt.Errorf("a message of %d bytes is cut short", size)
		}
		messages = append(messages, append([]byte(nil), p[:size]...))
		p = p[size:]
	}
	return messages, nil
}

// player gives messages as input 0.
type player struct {
	host.Absent
	messages [][]byte
	at       int
}

func (p *player) InputNext(int) int64 {
	p.at++
	if p.at > len(p.messages) {
		return 0
	}
	return int64(len(p.messages[p.at-1]))
}

func (p *player) InputRead(_ int, b []byte) int32 { return int32(copy(b, p.messages[p.at-1])) }

func (p *player) OutputWrite(int, []byte) int32 { return 0 }

// decode reads messages back into rows.
func decode(messages [][]byte) (fields []weir.Field, rows []Row, err error) {
	before := host.Use(&player{messages: messages})
	defer host.Use(before)
	err = seam.Run(func(c *weir.Call) error {
		in := c.Input(0)
		fields = in.Fields()
		for in.Next() {
			b := in.Batch()
			if err := checkDecimals(b); err != nil {
				return err
			}
			for i := range b.Len() {
				row := make(Row, len(fields))
				for j, f := range fields {
					row[j] = value(b.Column(f.Name), i)
				}
				rows = append(rows, row)
			}
		}
		return in.Err()
	}, 1)
	return fields, rows, err
}

// checkDecimals holds decimals to their precision, as the host does.
func checkDecimals(b *weir.Batch) error {
	for _, f := range b.Fields() {
		if f.Type.Kind != weir.KindDecimal128 {
			continue
		}
		v := b.Column(f.Name).Decimal128()
		for i := range v.Len() {
			if !v.Null(i) && !v.At(i).Fits(v.Precision) {
				return fmt.Errorf("column %s: row %d, %s, does not fit %s", f.Name, b.Start()+int64(i), v.At(i).Text(v.Scale), f.Type)
			}
		}
	}
	return nil
}
