package plugin

import (
	"context"
	"slices"
	"sync"

	"github.com/weir-data/weir/abi"
)

// kept is an instance between two calls of a function that declared reuse,
// with what it has read of its batch inputs.
type kept struct {
	module   *Module
	function string
	in       *instance
	versions []string // of each input that it read to the end; "" of others
	bytes    int64
}

// idle holds the kept instances of an engine, the one used longest ago first.
// It is bounded in bytes of linear memory, and gives way when the instances
// that run need the engine's budget.
type idle struct {
	most int64

	mu    sync.Mutex
	list  []*kept
	bytes int64
}

// take gives an instance of a function that has read just these versions, or
// has not read an input yet. Ones with other versions have no future and go.
func (p *idle) take(m *Module, function string, versions []string) *kept {
	p.mu.Lock()
	var found *kept
	var stale []*kept
	for i := len(p.list) - 1; i >= 0 && found == nil; i-- {
		k := p.list[i]
		if k.module != m || k.function != function {
			continue
		}
		p.drop(i)
		if k.fits(versions) {
			found = k
		} else {
			stale = append(stale, k)
		}
	}
	p.mu.Unlock()
	closeAll(stale)
	return found
}

func (k *kept) fits(versions []string) bool {
	for i, v := range k.versions {
		if v != "" && v != versions[i] {
			return false
		}
	}
	return true
}

func (p *idle) drop(i int) {
	p.bytes -= p.list[i].bytes
	p.list = slices.Delete(p.list, i, i+1)
}

// put keeps an instance, at the cost of older ones. An instance of a module
// that was closed meanwhile is closed.
func (p *idle) put(k *kept) {
	p.mu.Lock()
	if k.module.gone {
		p.mu.Unlock()
		k.in.close()
		return
	}
	p.list = append(p.list, k)
	p.bytes += k.bytes
	var out []*kept
	for p.bytes > p.most {
		out = append(out, p.list[0])
		p.drop(0)
	}
	p.mu.Unlock()
	closeAll(out)
}

// relieve closes the instance that was used longest ago; false when there is none.
func (p *idle) relieve() bool {
	p.mu.Lock()
	var out []*kept
	if len(p.list) > 0 {
		out = append(out, p.list[0])
		p.drop(0)
	}
	p.mu.Unlock()
	closeAll(out)
	return out != nil
}

// purge closes the instances of a module, for good, or of all when it is nil.
func (p *idle) purge(m *Module) {
	p.mu.Lock()
	if m != nil {
		m.gone = true
	}
	var out []*kept
	for i := len(p.list) - 1; i >= 0; i-- {
		if k := p.list[i]; m == nil || k.module == m {
			out = append(out, k)
			p.drop(i)
		}
	}
	p.mu.Unlock()
	closeAll(out)
}

func closeAll(list []*kept) {
	for _, k := range list {
		k.in.close()
	}
}

// reuses reports whether the call may run in an instance that ran before.
func (r *run) reuses() bool { return r.function.Reuse && r.call.Versions != nil }

// instance gives an instance for the call, and says to its inputs what the
// instance has read of them before. Only the first attempt takes a kept one.
func (r *run) instance(ctx context.Context, first bool) (*instance, error) {
	for _, i := range r.inputs {
		i.unchanged = false
	}
	r.known = make([]string, len(r.inputs))
	if first && r.reuses() {
		if k := r.module.unit.engine.idle.take(r.module, r.function.Name, r.call.Versions); k != nil {
			k.in.renew(ctx)
			r.known = k.versions
			for n, i := range r.inputs {
				i.unchanged = k.versions[n] != ""
			}
			return k.in, nil
		}
	}
	return r.module.unit.instantiate(ctx, r.module.conf, r.limits)
}

// keep puts the instance of a call that succeeded where the next one finds it,
// if the function wants that. One whose memory is nearly used up would fail soon.
func (r *run) keep(in *instance) bool {
	if !r.reuses() || in.linear.size > in.linear.max/4*3 {
		return false
	}
	versions := make([]string, r.declared())
	for n, i := range r.inputs[:r.declared()] {
		if r.function.Inputs[n].Mode != abi.ModeBatch {
			continue
		}
		switch {
		case i.ended && !i.closed:
			versions[n] = r.call.Versions[n]
		case !i.schema: // nothing of it was asked for
			versions[n] = r.known[n]
		}
	}
	in.renew(context.Background())
	r.module.unit.engine.idle.put(&kept{r.module, r.function.Name, in, versions, int64(in.linear.size)})
	return true
}

// renew makes an instance that ran forget its call, but not its memory and
// its monotonic clock, which no guest could bear to see turned back.
func (in *instance) renew(ctx context.Context) {
	in.ctx.Context = ctx
	in.call, in.result, in.onLog, in.early = nil, nil, nil, nil
	in.logged, in.logCut = 0, false
	in.lastError, in.dying, in.failText, in.failed = "", "", "", false
	in.fault = nil
}
