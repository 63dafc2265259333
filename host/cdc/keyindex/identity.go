package keyindex

import (
	"github.com/zeebo/xxh3"

	"github.com/weir-data/weir/host/cdc/rowcode"
)

// WithStart gives the identity of one version of a key: of the key's hash and of
// its start as rowcode.Order codes it.
func WithStart(key rowcode.Hash, start []byte) rowcode.Hash {
	var room [96]byte
	return rowcode.Hash(xxh3.Hash128(append(append(room[:0], key[:]...), start...)).Bytes())
}
