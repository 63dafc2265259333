package delta

import (
	"context"
	"sync"

	"github.com/weir-data/weir/host/fault"
)

// readAhead is how many files of the log are read and decoded at once.
const readAhead = 16

// logPart is what is read in one piece of the log: a commit, or the compacted
// file that stands for several.
type logPart struct {
	from, to int64
	name     string // of a compacted file
}

// parts divides the commits from..to.
func (s *segment) parts(from, to int64) []logPart {
	if from > to {
		return nil
	}
	out := make([]logPart, 0, to-from+1)
	for v := from; v <= to; v++ {
		p := logPart{from: v, to: v}
		if c, ok := s.compactedFrom(v, to); ok {
			p.to, p.name = c.to, c.name
			v = c.to
		}
		out = append(out, p)
	}
	return out
}

// eachCommit calls f for each of the commits from..to, in order.
func (t *Table) eachCommit(ctx context.Context, from, to int64, f func(c *commitActions, version int64) error) error {
	return t.eachPart(ctx, (&segment{}).parts(from, to), f)
}

// eachPart reads parts of the log, several at once, and calls f for them in order.
func (t *Table) eachPart(ctx context.Context, parts []logPart, f func(c *commitActions, version int64) error) (err error) {
	type part struct {
		actions *commitActions
		err     error
	}
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	queue := make(chan chan part, readAhead)
	readers.Go(func() {
		defer close(queue)
		for _, p := range parts {
			read := make(chan part, 1)
			select {
			case queue <- read:
			case <-ctx.Done():
				return
			}
			readers.Go(func() {
				c, err := t.readPart(ctx, p)
				read <- part{c, err}
			})
		}
	})
	for _, p := range parts {
		read, ok := <-queue
		if !ok {
			return ctx.Err()
		}
		got := <-read
		if got.err != nil {
			return got.err
		}
		if p.name != "" && got.actions == nil {
			// The compacted file is damaged or gone; its commits are not.
			if err := t.eachCommit(ctx, p.from, p.to, f); err != nil {
				return err
			}
			continue
		}
		if err := f(got.actions, p.to); err != nil {
			return err
		}
	}
	return nil
}

// readPart decodes a part; nothing, without an error, is a compacted file that cannot be used.
func (t *Table) readPart(ctx context.Context, p logPart) (*commitActions, error) {
	if p.name == "" {
		return t.readCommit(ctx, p.to)
	}
	data, err := t.store.Get(ctx, p.name)
	if err == nil {
		var c *commitActions
		if c, err = decodeActions(data); err == nil && c.protocol != nil {
			err = c.protocol.checkReadable()
		}
		if err == nil && c.isReconciled() {
			return c, nil
		}
	}
	if ctx.Err() != nil || fault.Is(err, "DELTA_UNSUPPORTED_FEATURE") {
		return nil, err
	}
	return nil, nil
}

// isReconciled tells whether the actions have one word on each thing, as those
// of a compacted file must: in the wild there are files that only string the
// commits together, and which of two words is the later one cannot be told.
func (c *commitActions) isReconciled() bool {
	if len(c.cdc) > 0 {
		return false
	}
	seen := make(map[string]bool, len(c.adds)+len(c.removes)+len(c.txns)+len(c.domains))
	again := func(kind, key string, err error) bool {
		key = kind + key
		twice := seen[key] || err != nil
		seen[key] = true
		return twice
	}
	for i := range c.adds {
		key, err := fileKey(c.adds[i].Path, c.adds[i].DeletionVector)
		if again("file ", key, err) {
			return false
		}
	}
	for i := range c.removes {
		key, err := fileKey(c.removes[i].Path, c.removes[i].DeletionVector)
		if again("file ", key, err) {
			return false
		}
	}
	for i := range c.txns {
		if again("txn ", c.txns[i].AppID, nil) {
			return false
		}
	}
	for i := range c.domains {
		if again("domain ", c.domains[i].Domain, nil) {
			return false
		}
	}
	return true
}
