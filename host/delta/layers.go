package delta

import "maps"

// layers is a map that is cheap to derive from a big one: a frozen base that
// versions share, and the few entries that differ from it. A snapshot of a
// table with many files advances by the size of a commit.
type layers[V any] struct {
	base map[string]V
	over map[string]layer[V]
	n    int
	own  bool // base belongs to this value alone and may be changed
}

type layer[V any] struct {
	value V
	live  bool
}

func newLayers[V any]() *layers[V] {
	return &layers[V]{base: map[string]V{}, own: true}
}

// fork gives a value that can be changed without changing l.
func (l *layers[V]) fork() *layers[V] {
	if len(l.over) > 1024 && len(l.over)*4 > len(l.base) {
		base := maps.Clone(l.base)
		for k, e := range l.over {
			if e.live {
				base[k] = e.value
			} else {
				delete(base, k)
			}
		}
		return &layers[V]{base: base, n: l.n, own: true}
	}
	return &layers[V]{base: l.base, over: maps.Clone(l.over), n: l.n}
}

// freeze ends the changes to a value that owns its base.
func (l *layers[V]) freeze() { l.own = false }

func (l *layers[V]) get(k string) (V, bool) {
	if e, ok := l.over[k]; ok {
		return e.value, e.live
	}
	v, ok := l.base[k]
	return v, ok
}

func (l *layers[V]) set(k string, v V) {
	if _, ok := l.get(k); !ok {
		l.n++
	}
	l.put(k, layer[V]{v, true})
}

func (l *layers[V]) drop(k string) {
	if _, ok := l.get(k); ok {
		l.n--
		l.put(k, layer[V]{})
	}
}

func (l *layers[V]) put(k string, e layer[V]) {
	if l.own {
		if e.live {
			l.base[k] = e.value
		} else {
			delete(l.base, k)
		}
		return
	}
	if l.over == nil {
		l.over = map[string]layer[V]{}
	}
	l.over[k] = e
}

// each calls f for every live entry, in no order.
func (l *layers[V]) each(f func(k string, v V)) {
	for k, v := range l.base {
		if _, ok := l.over[k]; !ok {
			f(k, v)
		}
	}
	for k, e := range l.over {
		if e.live {
			f(k, e.value)
		}
	}
}
