package plugin

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// clock is the guest's view of time: the wall shows the batch timestamp and
// never moves; the monotonic clock starts at 0 and moves by 1 µs each time it is
// read (a frozen one hangs Go's timers, one of 1 ms starves its collector),
// and by the timeout of a sleep.
type clock struct {
	wall int64 // ns since 1970
	mono int64 // ns
}

const clockStep = 1000

func (c *clock) monotonic() int64 {
	now := c.mono
	c.mono += clockStep
	return now
}

// sleep moves the clock by ns; it saturates, so that no guest turns it back.
func (c *clock) sleep(ns int64) {
	const most = int64(1) << 62
	if ns > 0 && c.mono < most {
		c.mono += min(ns, most-c.mono)
	}
}

func (c *clock) set(batch time.Time) {
	if !batch.IsZero() {
		c.wall = batch.UnixNano()
	}
}

// random is the guest's source of randomness: ChaCha8, seeded by the call.
type random struct {
	src *rand.ChaCha8
}

// initSeed seeds _initialize and weir_describe, which belong to no call.
const initSeed = 0

func newRandom(phase string, seed uint64) random {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], seed)
	return random{rand.NewChaCha8(sha256.Sum256(append([]byte("weir_v1 "+phase+" "), n[:]...)))}
}

func (r random) fill(p []byte) {
	_, _ = r.src.Read(p) // never fails
}
