package ingest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// What inference looks at: the first files up to either bound, as Auto Loader.
const (
	sampleFiles = 1000
	sampleBytes = 50 << 30
)

// Infer makes the schema from a sample of the files (the first 1,000, or the
// first 50 GB), with hints applied, or gives the declared one. Files that no
// record can be taken from (empty, gone or corrupt and ignored) count for nothing.
//
// Errors: UNABLE_TO_INFER_SCHEMA when there is no record and no hint,
// MALFORMED_RECORD_IN_PARSING under FAILFAST, and those of reading a file.
func (s *Source) Infer(ctx context.Context, files []File) (*Schema, error) {
	if len(s.config.schema) > 0 {
		return s.declared(), nil
	}
	store, err := s.place.files()
	if err != nil {
		return nil, err
	}
	files = sample(files)
	workers := min(runtime.GOMAXPROCS(0), max(len(files), 1))
	shapes := make([]shape, workers)
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fault.New("INTERNAL_ERROR", "inference failed: %v", p)
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return nil
				}
				f := &source{File: files[i], index: i}
				if err := s.inferFile(gctx, store, f, &shapes[w]); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	data := &shape{}
	for i := range shapes {
		data.merge(&shapes[i])
	}
	partitions := &shape{}
	for _, f := range files {
		for _, p := range s.partitionsOf(f.Path) {
			sh := partitions.child([]byte(p.key))
			if p.value == nullPartition {
				sh.kinds |= sawNull
			} else {
				s.config.shapeText([]byte(p.value), sh)
			}
		}
	}
	return s.assemble(data, partitions)
}

func sample(files []File) []File {
	total := int64(0)
	for i, f := range files {
		if i == sampleFiles || total >= sampleBytes {
			return files[:i]
		}
		total += max(f.Size, 0)
	}
	return files
}

func (s *Source) inferFile(ctx context.Context, store storage.Store, f *source, sh *shape) error {
	c := s.config
	k, err := openChunks(ctx, c, store, s.place.name(f.Path), f)
	if err == nil {
		defer k.close()
		err = s.inferChunks(k, sh)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotExist) && c.ignoreMissing:
		return nil
	case ctx.Err() == nil && c.ignoreCorrupt && !errors.Is(err, storage.ErrPermission) && !errors.Is(err, storage.ErrNotExist) && !fault.Is(err, "MALFORMED_RECORD_IN_PARSING"):
		return nil
	}
	return readError(ctx, err, f.Path)
}

func (s *Source) inferChunks(k *chunker, sh *shape) error {
	for {
		ch, err := k.next()
		if ch == nil || err != nil {
			return err
		}
		switch {
		case ch.overlong:
			err = s.refused(ch, 0, ch.line, "a record longer than maxRecordBytes")
		case s.config.format == formatJSON:
			err = s.inferJSON(ch, sh)
		default:
			err = s.inferCSV(ch, sh)
		}
		ch.recycle()
		if err != nil {
			return err
		}
	}
}

// refused is the error for a malformed record under FAILFAST; in the other
// modes such a record tells nothing about the schema.
func (s *Source) refused(ch *chunk, at int, line int64, why string) error {
	if s.config.mode != failFast {
		return nil
	}
	return fault.New("MALFORMED_RECORD_IN_PARSING", "%s (byte %d)", why, ch.offset+int64(at)).At(fault.Where{File: ch.file.Path, Line: line})
}

// inferJSON adds the records of a chunk to the shape. A malformed record is left
// out whole. Hardly any chunk has one, so that its records are looked at once,
// and a second time, each checked before its shape is taken, when one was bad.
func (s *Source) inferJSON(ch *chunk, sh *shape) error {
	if utf8.Valid(ch.data[:ch.n]) {
		seen := &shape{}
		if bad, err := s.inferRecords(ch, seen, false); !bad || err != nil {
			sh.merge(seen)
			return err
		}
	}
	_, err := s.inferRecords(ch, sh, true)
	return err
}

// inferRecords is one look at a chunk, which it breaks off at a bad record
// unless it checks records first.
func (s *Source) inferRecords(ch *chunk, sh *shape, check bool) (bad bool, err error) {
	d := jsonDecoder{jsonScan: jsonScan{b: ch.data, end: ch.n, rules: s.config.json}}
	inArray := ch.inArray
	line := ch.line
	counted := 0
	for p := 0; p < d.end; {
		c := d.b[p]
		if c <= ' ' || c == ',' && inArray {
			if c == '\n' && !s.config.multiLine {
				inArray = false
			}
			p++
			continue
		}
		if q := d.space(p); q != p {
			p = q
			continue
		}
		if c == ']' && inArray {
			inArray = false
			p++
			continue
		}
		if c == '[' && !inArray {
			inArray = true
			p++
			continue
		}
		start := p
		d.why, d.depth = "", 0
		switch {
		case c != '{':
			p = d.fail(p, "a record must be an object")
		case !check:
			p = d.shapeOf(p, sh, s.config)
		default:
			if p = d.skip(p); p >= 0 && !utf8.Valid(d.b[start:p]) {
				p = d.fail(start, "invalid UTF-8")
			}
			if p >= 0 {
				d.shapeOf(start, sh, s.config)
			}
		}
		if p >= 0 {
			continue
		}
		if !check {
			return true, nil
		}
		line += int64(countLines(d.b[counted:start]))
		counted = start
		if err := s.refused(ch, start, line, d.why); err != nil {
			return true, err
		}
		if s.config.multiLine {
			p = d.documentEnd(start, inArray)
		} else {
			p = d.ends.find(d.b, start, d.end)
			inArray = false
		}
		p = max(p, start+1)
	}
	return false, nil
}

// inferCSV adds the records of a chunk to the shape. Every name of the header
// is a column, a value beyond it is not.
func (s *Source) inferCSV(ch *chunk, sh *shape) error {
	c := s.config
	d := csvScan{b: ch.data, end: ch.n, rules: &c.csv, multi: c.multiLine}
	sh.kinds |= sawObject
	columns := make([]*shape, 0, len(ch.file.header))
	note := func(i int, name string) *shape {
		col := sh.child([]byte(name))
		col.kinds |= sawNull
		if at := (firstSeen{true, ch.file.index, int64(i)}); at.before(col.at) {
			col.at = at
		}
		return col
	}
	for i, name := range ch.file.header {
		columns = append(columns, note(i, name))
	}
	valid := utf8.Valid(d.b[:d.end])
	line := ch.line
	for p := 0; p < d.end; line++ {
		if q := d.pass(p); q != p {
			p = q
			continue
		}
		end, why := d.record(p)
		if why == "" && !valid && !utf8.Valid(d.b[p:end]) {
			why = "invalid UTF-8"
		}
		if why != "" {
			if err := s.refused(ch, p, line, why); err != nil {
				return err
			}
		} else {
			for i, f := range d.fields {
				if i >= len(columns) {
					if ch.file.header != nil {
						break
					}
					columns = append(columns, note(i, nameless(i)))
				}
				if v := d.value(f); len(v) > 0 && string(v) != c.csv.null {
					c.shapeText(v, columns[i])
				}
			}
		}
		if d.multi {
			line += int64(bytes.Count(d.b[p:end], []byte{'\n'}))
		}
		p = d.afterLine(end)
	}
	return nil
}
