package ingest

import "github.com/weir-data/weir/host/relation"

// rescue collects what a record has that no column can take, as the text of
// the rescued data column: one flat JSON object of the fields, then _file_path.
//
//   - a number, true and false stand as they were written,
//   - a string stands as a string,
//   - an object or array is a string that holds its text,
//   - a field inside another is named by its path: a.b, items[2].price,
//   - a record that is malformed is one field, _corrupt_record, with its text.
type rescue struct {
	buf []byte
	// suffix is what ends the text: the file's path, as JSON.
	suffix  []byte
	scratch []byte
}

const corruptKey = "_corrupt_record"

// file starts the records of a file.
func (r *rescue) file(path string) {
	r.suffix = append(r.suffix[:0], `,"_file_path":`...)
	r.suffix = relation.AppendString(r.suffix, text([]byte(path)))
	r.suffix = append(r.suffix, '}')
}

func (r *rescue) any() bool { return len(r.buf) > 0 }

func (r *rescue) reset() { r.buf = r.buf[:0] }

// name starts a field.
func (r *rescue) name(name string) {
	if len(r.buf) == 0 {
		r.buf = append(r.buf, '{')
	} else {
		r.buf = append(r.buf, ',')
	}
	r.buf = relation.AppendString(r.buf, name)
	r.buf = append(r.buf, ':')
}

// text adds a field with a string value.
func (r *rescue) text(name string, v []byte) {
	r.name(name)
	r.buf = relation.AppendString(r.buf, text(v))
}

// take gives the finished text, valid until the next record.
func (r *rescue) take() []byte {
	r.buf = append(r.buf, r.suffix...)
	return r.buf
}

// rescueValue adds the JSON value b[p:end] under a name; a null has nothing to rescue.
func (s *jsonScan) rescueValue(r *rescue, name string, p, end int) {
	raw := s.b[p:end]
	switch tok := s.token(p); tok {
	case tokNull:
	case tokTrue, tokFalse:
		r.name(name)
		r.buf = append(r.buf, raw...)
	case tokNumber:
		strict := jsonScan{b: s.b, end: s.end}
		if stop, _ := strict.number(p); stop != end {
			r.text(name, raw) // leading zeros are no JSON
			return
		}
		r.name(name)
		r.buf = append(r.buf, raw...)
	case tokString:
		inner := raw[1 : len(raw)-1]
		r.scratch = append(r.scratch[:0], inner...)
		r.text(name, r.scratch[:unescape(r.scratch, inner)])
	default:
		r.text(name, raw)
	}
}
