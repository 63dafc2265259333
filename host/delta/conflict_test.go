package delta

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// TestLostRacesOverRows commits on a stale snapshot of a table that has the
// rows a, b, c, d in one file and y, z in another, with deletion vectors.
func TestLostRacesOverRows(t *testing.T) {
	type side func(f *fixture, s *Snapshot, abcd, yz AddFile) Commit
	del := func(reads Reads, rows ...int64) side {
		return func(_ *fixture, s *Snapshot, abcd, _ AddFile) Commit {
			return Commit{Read: s, Operation: "DELETE", Delete: remove(abcd, rows...), Reads: reads}
		}
	}
	// update takes a row out and puts a new one in.
	update := func(reads Reads, row int64, name string) side {
		return func(f *fixture, s *Snapshot, abcd, _ AddFile) Commit {
			return Commit{Read: s, Operation: "UPDATE", Delete: remove(abcd, row), Add: f.files(s, name), Reads: reads}
		}
	}
	add := func(reads Reads, name string) side {
		return func(f *fixture, s *Snapshot, _, _ AddFile) Commit {
			return Commit{Read: s, Operation: "WRITE", Add: f.files(s, name), Reads: reads}
		}
	}
	drop := func(reads Reads) side {
		return func(_ *fixture, s *Snapshot, _, yz AddFile) Commit {
			return Commit{Read: s, Operation: "DELETE", Remove: []AddFile{yz}, Reads: reads}
		}
	}
	optimize := func(f *fixture, s *Snapshot, abcd, _ AddFile) Commit {
		return Commit{Read: s, Operation: "OPTIMIZE", Remove: []AddFile{abcd}, Add: f.letters(s, "moved", "abcd"), Rearranges: true}
	}
	rewrite := func(f *fixture, s *Snapshot, abcd, _ AddFile) Commit {
		return Commit{Read: s, Operation: "UPDATE", Remove: []AddFile{abcd}, Add: f.letters(s, "rewritten", "abcx")}
	}
	replace := func(f *fixture, s *Snapshot, _, _ AddFile) Commit {
		return Commit{Read: s, Operation: "WRITE", ReplaceAll: true, Add: f.files(s, "only")}
	}
	domain := func(configuration string) side {
		return func(_ *fixture, s *Snapshot, _, _ AddFile) Commit {
			return Commit{Read: s, Operation: "SET DOMAIN", Domains: []DomainMetadata{{Domain: "app", Configuration: configuration}}}
		}
	}
	nothing, all := Reads{}, Reads{Table: true}
	where := func(letter string) Reads { return Reads{Where: Compare([]string{"s"}, Equal, letter)} }

	for name, p := range map[string]struct {
		winner, loser side
		serializable  bool
		code          string // "" is success
		cells         string
	}{
		"deletions of other rows of a file":                     {del(nothing, 0), del(nothing, 2, 3), false, "", "b y z"},
		"deletions of the same row":                             {del(nothing, 0, 1), del(nothing, 1, 2), false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"deletions that leave nothing together":                 {del(nothing, 0, 1), del(nothing, 2, 3), false, "", "y z"},
		"a deletion of a row of a file that is gone":            {del(nothing, 0, 1, 2, 3), del(nothing, 0), false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"a deletion after a rewrite of the file":                {rewrite, del(nothing, 0), false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"a deletion after the file was moved":                   {optimize, del(nothing, 0), false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"a deletion after a replacement":                        {replace, del(nothing, 0), false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"a deletion after an append":                            {add(nothing, "w"), del(nothing, 0), false, "", "b c d w y z"},
		"a deletion after a removal of another file":            {drop(nothing), del(nothing, 0), false, "", "b c d"},
		"a removal after a deletion in another file":            {del(nothing, 0), drop(nothing), false, "", "b c d"},
		"updates of other rows":                                 {update(where("a"), 0, "w"), update(where("b"), 1, "l"), false, "", "c d l w y z"},
		"updates of the same row":                               {update(where("a"), 0, "w"), update(where("a"), 0, "l"), false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"an update that makes a row which ours would change":    {update(where("a"), 0, "b"), update(where("b"), 1, "l"), false, "DELTA_CONCURRENT_APPEND", ""},
		"a rewrite of a file after a deletion in it":            {del(nothing, 0), rewrite, false, "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"a move of a file after a deletion in it":               {del(nothing, 0), optimize, false, "DELTA_CONCURRENT_DELETE_READ", ""},
		"a move of a file after it was moved":                   {optimize, optimize, false, "DELTA_CONCURRENT_DELETE_READ", ""},
		"a move after an append":                                {add(nothing, "w"), optimize, false, "", "a b c d w y z"},
		"a move after an update elsewhere":                      {drop(all), optimize, false, "", "a b c d"},
		"an append after a move":                                {optimize, add(nothing, "l"), false, "", "a b c d l y z"},
		"an append that depends on the table, after a move":     {optimize, add(all, "l"), false, "", "a b c d l y z"},
		"an append that depends on the table, after an append":  {add(nothing, "w"), add(all, "l"), false, "", "a b c d l w y z"},
		"the same, if it has to be in this order":               {add(nothing, "w"), add(all, "l"), true, "DELTA_CONCURRENT_APPEND", ""},
		"an append that depends on the table, after another":    {add(all, "w"), add(all, "l"), false, "DELTA_CONCURRENT_APPEND", ""},
		"an append that depends on the table, after a deletion": {del(nothing, 0), add(all, "l"), false, "DELTA_CONCURRENT_DELETE_READ", ""},
		"an append that depends on the table, after a removal":  {drop(nothing), add(all, "l"), false, "DELTA_CONCURRENT_DELETE_READ", ""},
		"an append that depends on other rows":                  {add(all, "w"), add(where("k"), "l"), true, "", "a b c d l w y z"},
		"an append that depends on such rows":                   {add(all, "k"), add(where("k"), "l"), false, "DELTA_CONCURRENT_APPEND", ""},
		"an append that depends on rows that are gone":          {drop(nothing), add(where("y"), "l"), true, "DELTA_CONCURRENT_DELETE_READ", ""},
		"a constraint-like change after an append": {add(nothing, "w"), func(_ *fixture, s *Snapshot, _, _ AddFile) Commit {
			return Commit{Read: s, Properties: map[string]string{"x": "y"}, Reads: all}
		}, false, "DELTA_CONCURRENT_APPEND", ""},
		"domains of the same name": {domain("1"), domain("2"), false, "DELTA_CONCURRENT_DOMAIN", ""},
		"a domain beside rows":     {domain("1"), del(nothing, 0), false, "", "b c d y z"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			properties := map[string]string{"delta.enableDeletionVectors": "true", "delta.feature.domainMetadata": "supported"}
			if p.serializable {
				properties["delta.isolationLevel"] = "Serializable"
			}
			f.commit(Commit{Schema: plain, Properties: properties, Add: append(f.letters(nil, "1", "abcd"), f.letters(nil, "2", "yz")...)})
			s, live := f.snapshot(), f.live()
			loser := f.reopen() // it has not seen the winner
			if _, err := loser.Snapshot(background); err != nil {
				t.Fatal(err)
			}
			lost := p.loser(f, s, live[0], live[1])
			won := p.winner(f, s, live[0], live[1])
			if p.winner != nil && len(won.Add) > 0 && len(lost.Add) > 0 && won.Add[0].Path == lost.Add[0].Path {
				lost.Add[0].Path = f.files(s, "other")[0].Path
			}
			f.commit(won)
			before := f.cells()
			res, err := loser.Commit(background, lost)
			if fault.CodeOf(err) != p.code {
				t.Fatalf("%v, want %q", err, p.code)
			}
			if p.code == "" {
				if res.Version != 2 || f.cells() != p.cells {
					t.Errorf("version %d: %s, want %s", res.Version, f.cells(), p.cells)
				}
				return
			}
			text := err.Error()
			if !strings.Contains(text, lost.operation()+", which read version 0, conflicts with "+won.operation()+" of version 1") {
				t.Errorf("it does not name both sides: %s", text)
			}
			var coded *fault.Error
			if !errors.As(err, &coded) || !coded.Retry {
				t.Errorf("it should be worth another try: %v", err)
			}
			if got := f.cells(); got != before {
				t.Errorf("%s became %s", before, got)
			}
		})
	}
}

// A rival deletes a row of the same file between our look and our put, several
// times: each attempt needs another vector, and no vector is left behind.
func TestVectorsAreMadeAnewForEachAttempt(t *testing.T) {
	f := newFixture(t)
	s, file := f.abcd()
	rival := f.reopen()
	next := int64(0)
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Name: "*.json", Times: 3, Effect: faultstore.Call(func() {
		now, err := rival.Snapshot(background)
		if err != nil {
			t.Error(err)
			return
		}
		live, err := now.Files(background)
		if err != nil {
			t.Error(err)
			return
		}
		if next < 2 {
			if _, err := rival.Commit(background, Commit{Read: now, Delete: remove(live[0], next)}); err != nil {
				t.Error(err)
			}
		} else if _, err := rival.Commit(background, Commit{Read: now, Operation: "nothing"}); err != nil {
			t.Error(err)
		}
		next++
	})})
	res, err := f.table.Commit(background, Commit{Read: s, Delete: remove(file, 3)})
	if err != nil || res.Version != 4 || f.cells() != "c" {
		t.Errorf("%+v, %v, %s", res, err, f.cells())
	}
	if n := f.vectorFiles(); n != 3 {
		t.Errorf("%d files of vectors for 3 commits", n)
	}
}

// A deletion whose answer was lost is recognised, and its vector kept.
func TestADeletionWithoutAnAnswerIsRecognised(t *testing.T) {
	f := newFixture(t)
	s, file := f.abcd()
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Name: "*.json", Times: 1, Effect: faultstore.LoseAnswer(errLost)})
	res, err := f.table.Commit(background, Commit{Read: s, Delete: remove(file, 3)})
	if err != nil || res.Version != 1 || f.cells() != "a b c" {
		t.Errorf("%+v, %v, %s", res, err, f.cells())
	}
}
