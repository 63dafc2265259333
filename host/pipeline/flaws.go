package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weir-data/weir/host/fault"
)

// flaws collects what is wrong with a project, so that a person gets to see
// all of it at once. What stands on something wrong is left out of further
// checks: its complaints would say the same again.
type flaws struct {
	found []error
	// only is the file whose flaws matter, "" for every file; elsewhere counts the others.
	only      string
	elsewhere int
}

// add takes an error, if there is one, and tells whether there was.
func (f *flaws) add(err error) bool {
	if err == nil {
		return false
	}
	for _, e := range eachOf(err) {
		var coded *fault.Error
		if f.only != "" && errors.As(e, &coded) && coded.Where.File != "" && filepath.Clean(coded.Where.File) != f.only {
			f.elsewhere++
			continue
		}
		f.found = append(f.found, e)
	}
	return true
}

// any tells whether something is wrong, here or elsewhere.
func (f *flaws) any() bool { return len(f.found)+f.elsewhere > 0 }

// err gives all flaws as one error, in the order of their places.
func (f *flaws) err() error {
	slices.SortStableFunc(f.found, func(a, b error) int {
		x, y := placeOf(a), placeOf(b)
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return errors.Join(f.found...)
}

// unchecked reminds of what a run of one file does not look at.
func (p *Pipeline) unchecked(file string) string {
	if n := p.flaws.elsewhere; n > 0 {
		return fmt.Sprintf("only the datasets of %s were checked and refreshed; other files have errors (%d found), which weir dry-run shows", file, n)
	}
	return fmt.Sprintf("only the datasets of %s were checked and refreshed; what they mean to other files shows in weir dry-run", file)
}

// Flaws takes an error of Open or Plan apart: all that is wrong with the project.
func Flaws(err error) []error { return eachOf(err) }

func placeOf(err error) fault.Where {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Where
	}
	return fault.Where{}
}

// eachOf takes joined errors apart.
func eachOf(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, eachOf(e)...)
		}
		return all
	}
	return []error{err}
}

// without takes datasets out of the graph, and with them what reads them, in
// so many steps as it takes.
func (g *graph) without(wrong map[*dataset]bool) {
	if len(wrong) == 0 {
		return
	}
	for grown := true; grown; {
		grown = false
		for _, d := range g.sorted() {
			if wrong[d] {
				continue
			}
			for _, in := range d.inputs() {
				if up := in.upstream(); up != nil && wrong[up] {
					wrong[d], grown = true, true
					break
				}
			}
		}
	}
	for key, d := range g.tables {
		if wrong[d] {
			delete(g.tables, key)
		}
	}
	for key, d := range g.views {
		if wrong[d] {
			delete(g.views, key)
		}
	}
	g.order = slices.DeleteFunc(g.order, func(d *dataset) bool { return wrong[d] })
}
