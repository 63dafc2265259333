package delta

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the protocol's checksum, against torn reads and not against anybody
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const lastCheckpointName = logFolder + "/_last_checkpoint"

// lastCheckpoint is a hint: absent, stale and corrupt ones are normal, and so is
// one that does not fit its own checksum.
func (t *Table) lastCheckpoint(ctx context.Context) (version int64, ok bool, err error) {
	data, err := t.store.Get(ctx, lastCheckpointName)
	if errors.Is(err, storage.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	version, ok = decodeHint(data)
	return version, ok, nil
}

func decodeHint(data []byte) (version int64, ok bool) {
	var hint struct {
		Version  *int64 `json:"version"`
		Checksum string `json:"checksum"`
	}
	if json.Unmarshal(data, &hint) != nil || hint.Version == nil || *hint.Version < 0 {
		return 0, false
	}
	if hint.Checksum != "" {
		if sum, err := jsonChecksum(data); err != nil || sum != hint.Checksum {
			return 0, false
		}
	}
	return *hint.Version, true
}

// jsonChecksum is the MD5 of the canonical form of a JSON object: its leaves as
// path=value, in the order of the paths, without the checksum itself.
func jsonChecksum(data []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	leaves, err := canonicalLeaves(dec, nil, "", 0)
	if err == nil && dec.Decode(new(any)) != io.EOF {
		err = errors.New("more than one value")
	}
	if err != nil {
		return "", fault.Wrap(err, "DELTA_INVALID_LOG", "the JSON has no canonical form")
	}
	slices.SortFunc(leaves, func(a, b canonicalLeaf) int { return strings.Compare(a.path, b.path) })
	var b strings.Builder
	for i, l := range leaves {
		if i > 0 {
			if leaves[i-1].path == l.path {
				return "", fault.New("DELTA_INVALID_LOG", "the JSON has the key %s twice", l.path)
			}
			b.WriteByte(',')
		}
		b.WriteString(l.path + "=" + l.value)
	}
	sum := md5.Sum([]byte(b.String())) //nolint:gosec // see above
	return hex.EncodeToString(sum[:]), nil
}

type canonicalLeaf struct{ path, value string }

func canonicalLeaves(dec *json.Decoder, out []canonicalLeaf, path string, depth int) ([]canonicalLeaf, error) {
	if depth > 100 {
		return nil, errors.New("nested too deep")
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	d, nested := tok.(json.Delim)
	if !nested {
		return append(out, canonicalLeaf{path, canonicalScalar(tok)}), nil
	}
	for i := 0; dec.More(); i++ {
		key := itoa(int64(i))
		if d == '{' {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key = canonicalScalar(name)
		}
		if path != "" {
			key = path + "+" + key
		}
		before := len(out)
		if out, err = canonicalLeaves(dec, out, key, depth+1); err != nil {
			return nil, err
		}
		if depth == 0 && key == `"checksum"` {
			out = out[:before]
		}
	}
	_, err = dec.Token() // the end
	return out, err
}

func canonicalScalar(tok json.Token) string {
	switch v := tok.(type) {
	case string:
		return `"` + escapeBytes(v, func(c byte) bool {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			return !letter && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' && c != '~'
		}) + `"`
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return "null"
}
