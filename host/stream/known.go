package stream

import (
	"container/heap"
	"errors"
	"slices"
	"strings"
)

// sorted is a list of files ascending by path.
type sorted interface {
	// next moves on; false at the end.
	next() (bool, error)
	// view gives path and entry where next stands, valid until it moves.
	view() ([]byte, *knownFile)
	close() error
}

// fileList is a sorted list in memory.
type fileList struct {
	files []knownFile
	at    int
	path  []byte
}

// newFileList sorts files and gives them as a list.
func newFileList(files []knownFile) *fileList {
	slices.SortFunc(files, func(a, b knownFile) int { return strings.Compare(a.path, b.path) })
	return &fileList{files: files, at: -1}
}

func (l *fileList) next() (bool, error) {
	if l.at+1 >= len(l.files) {
		return false, nil
	}
	l.at++
	l.path = append(l.path[:0], l.files[l.at].path...)
	return true, nil
}

func (l *fileList) view() ([]byte, *knownFile) { return l.path, &l.files[l.at] }
func (l *fileList) close() error               { return nil }

// merged is several sorted lists as one.
type merged struct {
	lists []sorted // a heap by the current path once started
	all   []sorted
	begun bool
}

func mergeLists(lists ...sorted) *merged { return &merged{all: lists} }

func (m *merged) Len() int { return len(m.lists) }
func (m *merged) Less(i, j int) bool {
	return string(viewPath(m.lists[i])) < string(viewPath(m.lists[j]))
}
func (m *merged) Swap(i, j int) { m.lists[i], m.lists[j] = m.lists[j], m.lists[i] }
func (m *merged) Push(x any)    { m.lists = append(m.lists, x.(sorted)) }
func (m *merged) Pop() any {
	last := m.lists[len(m.lists)-1]
	m.lists = m.lists[:len(m.lists)-1]
	return last
}

func viewPath(s sorted) []byte {
	p, _ := s.view()
	return p
}

func (m *merged) next() (bool, error) {
	if !m.begun {
		m.begun = true
		for _, l := range m.all {
			ok, err := l.next()
			if err != nil {
				return false, err
			}
			if ok {
				m.lists = append(m.lists, l)
			}
		}
		heap.Init(m)
		return len(m.lists) > 0, nil
	}
	if len(m.lists) == 0 {
		return false, nil
	}
	ok, err := m.lists[0].next()
	switch {
	case err != nil:
		return false, err
	case !ok:
		heap.Pop(m)
	case len(m.lists) > 1:
		heap.Fix(m, 0)
	}
	return len(m.lists) > 0, nil
}

func (m *merged) view() ([]byte, *knownFile) { return m.lists[0].view() }

func (m *merged) close() error {
	var errs []error
	for _, l := range m.all {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}
