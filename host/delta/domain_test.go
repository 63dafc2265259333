package delta

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

func TestDomainsAreSetKeptAndTakenAway(t *testing.T) {
	f := newFixture(t)
	set := func(name, conf string) Commit {
		return Commit{Read: f.snapshot(), Domains: []DomainMetadata{{Domain: name, Configuration: conf}}}
	}
	drop := func(name string) Commit {
		return Commit{Read: f.snapshot(), Domains: []DomainMetadata{{Domain: name, Removed: true}}}
	}
	want := func(want string) {
		t.Helper()
		for _, s := range []*Snapshot{f.snapshot(), must(f.reopen().Snapshot(background))} {
			var got []string
			domains := s.Domains()
			for _, k := range slices.Sorted(maps.Keys(domains)) {
				got = append(got, k+"="+domains[k])
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%v, want %s", got, want)
			}
		}
	}
	f.commit(Commit{Schema: plain, Domains: []DomainMetadata{{Domain: "a", Configuration: "1"}}})
	if !slices.Contains(f.snapshot().Features(), "domainMetadata") {
		t.Errorf("features %v", f.snapshot().Features())
	}
	f.commit(set("b", `{"x":"<&>"}`))
	want(`a=1 b={"x":"<&>"}`)
	f.commit(set("a", "2"))
	f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Schema: plain})
	want(`a=2 b={"x":"<&>"}`)
	if err := f.table.writeCheckpoint(background, f.snapshot()); err != nil {
		t.Fatal(err)
	}
	want(`a=2 b={"x":"<&>"}`)
	v := f.commit(drop("a"))
	want(`b={"x":"<&>"}`)
	if e, err := f.table.entry(background, v); err != nil || len(e.Domains) != 1 || e.Domains[0] != (DomainMetadata{"a", "2", true}) {
		t.Errorf("a removal tells what it removes: %+v, %v", e.Domains, err)
	}
	v = f.commit(drop("a"))
	if e, err := f.table.entry(background, v); err != nil || len(e.Domains) != 0 {
		t.Errorf("nothing was there: %+v, %v", e.Domains, err)
	}
	for _, bad := range [][]DomainMetadata{{{}}, {{Domain: rowTrackingDomainName}}, {{Domain: "delta.other", Removed: true}}, {{Domain: "x"}, {Domain: "x"}}} {
		if _, err := f.table.Commit(background, Commit{Read: f.snapshot(), Domains: bad}); fault.CodeOf(err) != "DELTA_INVALID_DOMAIN" {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestClusteringColumnsChangeLater(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, ClusterBy: []string{"id"}})
	for _, by := range [][]string{{"s", "id"}, {}, {"s"}} {
		f.commit(Commit{Read: f.snapshot(), ClusterBy: by})
		if got := f.snapshot().clusterColumns(); !slices.Equal(got, by) {
			t.Errorf("%v, want %v", got, by)
		}
	}
	v := f.commit(Commit{Read: f.snapshot(), ClusterBy: []string{"s"}})
	if e, err := f.table.entry(background, v); err != nil || len(e.Domains) != 0 || e.Metadata != nil {
		t.Errorf("the same again: %+v, %v", e, err)
	}
	if _, err := f.table.Commit(background, Commit{Read: f.snapshot(), ClusterBy: []string{"x"}}); fault.CodeOf(err) != "DELTA_COLUMN_NOT_FOUND" {
		t.Error(err)
	}
	// Columns that are replaced take the clustering by them along.
	f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Schema: allTypes(false)})
	if got := f.snapshot().clusterColumns(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	g := newFixture(t)
	g.commit(Commit{Schema: plain})
	g.commit(Commit{Read: g.snapshot(), ClusterBy: []string{"id"}})
	if got := g.snapshot().Features(); !slices.Contains(got, "clustering") || !slices.Contains(got, "domainMetadata") {
		t.Errorf("features %v", got)
	}
}
