package delta

// hilbertKey gives the position on the Hilbert curve of a point whose
// coordinates have the given number of bits; len(axes)*bits is at most 64.
// Points that are near on the curve are near in space, in every coordinate
// alike, which no order by one column after the other can give. axes is used up.
//
// It is John Skilling's transform (Programming the Hilbert curve, 2004): the
// coordinates are turned in place into the curve's position, spread over them
// bit by bit.
func hilbertKey(axes []uint32, bits int) uint64 {
	if len(axes) == 1 {
		return uint64(axes[0])
	}
	top := uint32(1) << (bits - 1)
	for q := top; q > 1; q >>= 1 {
		p := q - 1
		for i := range axes {
			if axes[i]&q != 0 {
				axes[0] ^= p
			} else {
				t := (axes[0] ^ axes[i]) & p
				axes[0] ^= t
				axes[i] ^= t
			}
		}
	}
	for i := 1; i < len(axes); i++ {
		axes[i] ^= axes[i-1]
	}
	t := uint32(0)
	for q := top; q > 1; q >>= 1 {
		if axes[len(axes)-1]&q != 0 {
			t ^= q - 1
		}
	}
	key := uint64(0)
	for b := bits - 1; b >= 0; b-- {
		for i := range axes {
			key = key<<1 | uint64((axes[i]^t)>>b&1)
		}
	}
	return key
}

// curveBits is how many bits a rank has, so that the key of that many columns fits 64.
func curveBits(columns int) int { return min(16, 64/columns) }
